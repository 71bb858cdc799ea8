// A small chart of many runs: a place for each, from the oldest to the newest.

import { el } from "./parts.js";
import { svg } from "./draw.js";

export function spark(title, runs, name, curves, shown) {
  const high = Math.max(...curves.flatMap(([, value]) => runs.map(value)), 0);
  const x = (place) => (2000 * (place + 0.5)) / runs.length;
  const y = (value) => 1000 - 950 * (high && value / high);
  const lines = curves.map(([kind, value]) => svg("path", { class: `line ${kind}`, d: `M${runs.map((one, place) => `${x(place)} ${y(value(one))}`).join("L")}` }));
  const hits = runs.map((one, place) => svg("rect", {
    class: "bar hit", x: (2000 * place) / runs.length, y: 0, width: 2000 / runs.length, height: 1000,
    "data-tip": [name(one), ...curves.map(([kind, value]) => `${curves.length > 1 ? `${kind}  ` : ""}${shown(value(one))}`)].join("\n"),
  }));
  const newest = shown(curves[Math.floor(curves.length / 2)][1](runs[runs.length - 1]));
  return el("figure", { class: "chart spark" },
    el("figcaption", {}, el("h4", {}, title), el("span", { class: "unit" }, `newest ${newest}, highest ${shown(high)}`)),
    el("div", { class: "canvas" }, svg("svg", { class: "plot", viewBox: "0 0 2000 1000", preserveAspectRatio: "none", role: "img", "aria-label": title }, ...lines, ...hits)));
}
