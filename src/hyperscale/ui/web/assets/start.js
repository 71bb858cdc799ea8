// A run of a test file with other load: what is left empty stays as the file says.

import { call, el, get, told } from "./parts.js";

const FIELDS = [
  ["vus", "Users", "virtual users in all", { inputmode: "numeric", placeholder: "50" }],
  ["duration", "Duration", "how long", { placeholder: "1m30s" }],
  ["rate", "Rate", "iterations to start a second, instead of users", { placeholder: "200/s" }],
  ["stage", "Stages", "time and users, with blanks between: a ramp", { placeholder: "30s:50 1m:50 10s:0" }],
  ["iterations", "Iterations", "end after this many in all", { inputmode: "numeric", placeholder: "1000" }],
  ["host", "Host", "base of the file's relative addresses", { type: "url", placeholder: "https://staging.example.com" }],
];

export async function start() {
  const tests = await get("/api/tests");
  if (!tests.length) return [el("h1", {}, "Start a run"), el("p", { class: "empty" }, "There is no test file in this folder. hyperscale new test.py makes one to begin with.")];
  const file = el("select", { name: "file", id: "file" }, tests.map((one) => el("option", {}, one.file)));
  const name = el("select", { name: "name", id: "name" });
  const choose = () => {
    const { workflows } = tests.find((one) => one.file === file.value);
    name.replaceChildren(el("option", { value: "" }, workflows.length > 1 ? "all of them" : workflows[0]), ...(workflows.length > 1 ? workflows.map((one) => el("option", {}, one)) : []));
  };
  file.addEventListener("change", choose);
  choose();
  const button = el("button", { class: "primary" }, "Start");
  const form = el("form", { class: "start", autocomplete: "off", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    const wanted = Object.fromEntries([...new FormData(form)].map(([key, value]) => [key, String(value)]));
    if (await told(call("POST", "/api/start", wanted))) location.hash = "#/";
    button.disabled = false;
  } },
  field("file", "Test file", "", file), field("name", "Workflow", "", name),
  FIELDS.map(([key, label, hint, more]) => field(key, label, hint, el("input", { name: key, id: key, ...more }))),
  el("p", { class: "buttons" }, button));
  return [el("h1", {}, "Start a run"), el("p", { class: "lead" }, "What is left empty stays as the test file says. The results go into the folder."), form];
}

function field(id, label, hint, input) {
  return el("div", { class: "field" }, el("label", { for: id }, label), input, hint ? el("small", {}, hint) : "");
}
