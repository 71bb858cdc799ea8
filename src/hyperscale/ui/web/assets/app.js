// The frame: what the server tells is put together here, and the view that is open draws it.

import { entered, get, toast } from "./parts.js";
import { Live } from "./live.js";
import { runs } from "./history.js";
import { start } from "./start.js";

const main = document.getElementById("main");
export const site = { folder: null, starts: false, links: {} };

// ---- what is known of the run

const known = { set: {}, points: new Map(), series: new Map(), steps: new Map() };
function forget() {
  known.set = {};
  for (const map of [known.points, known.series, known.steps]) map.clear();
}
function learn(patch) {
  if (patch.fresh) forget();
  Object.assign(known.set, patch.set);
  const touched = new Set([...Object.keys(patch.gone ?? {}), ...Object.keys(patch.points ?? {})]);
  for (const name of touched) {
    if (!known.points.has(name)) known.points.set(name, new Map());
    const points = known.points.get(name);
    for (const moment of patch.gone?.[name] ?? []) points.delete(moment);
    for (const [moment, point] of Object.entries(patch.points?.[name] ?? {})) points.set(moment, point);
    known.series.set(name, [...points.values()].sort((a, b) => a.at_s - b.at_s));
  }
  for (const [name, rows] of Object.entries(patch.steps ?? {})) {
    if (!known.steps.has(name)) known.steps.set(name, []);
    for (const [place, row] of Object.entries(rows)) known.steps.get(name)[place] = row;
  }
}

// ---- the connection: opened again for as long as the page is there

const AGAIN_MS = 1000;
function connected(state, words) {
  document.getElementById("dot").className = state;
  document.getElementById("connection").textContent = words;
}
function follow() {
  const events = new EventSource("/api/events");
  events.onopen = () => connected("good", "connected");
  events.onmessage = (event) => {
    const begun = performance.now();
    learn(JSON.parse(event.data));
    if (known.set.run?.state === "finished" && !site.folder) connected("", "the run is over");
    draw();
    spent.push(performance.now() - begun);
    if (spent.length > 600) spent.shift();
  };
  events.onerror = () => {
    events.close();
    const over = known.set.run?.state === "finished" && !site.folder;
    connected(over ? "" : "bad", over ? "the run is over" : "connecting again…");
    setTimeout(follow, AGAIN_MS);
  };
}
// How long this script worked for each update, for whoever measures it.
const spent = [];
globalThis.hyperscaleSpentMs = spent;

// ---- views

const live = new Live(known);
let open = "";
function draw() {
  if (open === "live" && !document.hidden) live.draw();
}
document.addEventListener("visibilitychange", draw);

async function view() {
  const wanted = location.hash.replace(/^#\/?/, "").split("?")[0] || "live";
  open = { runs: "runs", start: "start" }[wanted] ?? "live";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === open) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    if (open === "live") main.replaceChildren(live.node);
    else main.replaceChildren(...(await (open === "runs" ? runs() : start())));
  } catch (error) {
    toast(error.message, true);
  }
  draw();
}
addEventListener("hashchange", view);

await entered;
Object.assign(site, await get("/api/site"));
live.site = site;
for (const link of document.querySelectorAll("nav a")) {
  if (link.dataset.view === "runs") link.hidden = !site.folder;
  if (link.dataset.view === "start") link.hidden = !site.starts;
}
for (const [name, href] of Object.entries(site.links)) {
  const link = Object.assign(document.createElement("a"), { href, textContent: name, rel: "noreferrer" });
  document.querySelector("nav").append(link);
}
if (!site.folder) document.querySelector("nav").hidden = true;
if (site.folder && !location.hash.replace(/^#\/?$/, "")) location.replace("#/runs");
follow();
await view();
