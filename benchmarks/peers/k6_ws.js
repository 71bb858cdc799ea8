import ws from "k6/ws";

export { options } from "./k6_options.js";

export default function () {
  ws.connect(`${__ENV.BENCH_TARGET.replace("http", "ws")}/ws`, {}, (socket) => {
    socket.on("open", () => socket.send("hello, WebSocket"));
    socket.on("message", (text) => socket.send(text));
    socket.setTimeout(() => socket.close(), parseInt(__ENV.BENCH_DURATION) * 1000);
  });
}
