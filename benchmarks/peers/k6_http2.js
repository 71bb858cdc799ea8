// One GET per iteration; over TLS k6 chooses HTTP/2 by itself where the server offers it.
import http from 'k6/http';

export { options } from './k6_options.js';

const url = `${__ENV.BENCH_TARGET}${__ENV.BENCH_PATH}`;

export default function () {
  const answer = http.get(url);
  if (answer.proto !== 'HTTP/2.0') throw new Error(`${answer.proto} instead of HTTP/2`);
}
