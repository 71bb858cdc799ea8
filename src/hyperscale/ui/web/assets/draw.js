// The charts of a run that goes on: the markup and the looks of the report's, drawn here because
// they grow every second.

import { el } from "./parts.js";

const WIDTH = 2000;
const HEIGHT = 1000;
const NAMESPACE = "http://www.w3.org/2000/svg";
// Labels of this many marks at most; all of them are in the list of events.
const MARKS_MAX = 30;

export function svg(tag, given = {}, ...children) {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(given)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
const percent = (share) => `${Math.round(share * 1e4) / 100}%`;

// ---- scales: where a value lies, from 0 to 1, and which values have a label

function nice(step) {
  const magnitude = 10 ** Math.floor(Math.log10(step));
  return [1, 2, 2.5, 5, 10].find((one) => step / magnitude <= one + 1e-9) * magnitude;
}
function linear(high, count = 4, whole = false) {
  if (!(high > 0)) return { low: 0, high: 1, ticks: [0, 1], at: (value) => value };
  const step = whole ? Math.max(1, Math.round(nice(high / count))) : nice(high / count);
  const steps = Math.ceil(Math.round((high / step) * 1e9) / 1e9);
  const top = steps * step;
  return { low: 0, high: top, ticks: Array.from({ length: steps + 1 }, (_, place) => place * step), at: (value) => value / top };
}
function decades(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const factor of [1, 2, 5]) found.push(factor * 10 ** power);
  }
  return found;
}
function thinned(ticks, most) {
  let kept = ticks;
  if (kept.length > most) kept = kept.filter((tick) => /^1e/.test(tick.toExponential(0)));
  while (kept.length > most) kept = kept.filter((_, place) => place % 2 === 0);
  return kept;
}
function fitting(low, high) {
  if (!(low > 0) || high / low <= 25) return linear(high);
  const all = decades(low, high);
  const start = all.filter((tick) => tick <= low * 1.0001).pop() ?? low;
  const stop = all.find((tick) => tick >= high * 0.9999) ?? high;
  const length = Math.log(stop / start);
  const ticks = thinned(all.filter((tick) => tick >= start * 0.999 && tick <= stop * 1.001), 9);
  return { low: start, high: stop, ticks, log: true, at: (value) => Math.log(Math.min(Math.max(value, start), stop) / start) / length };
}
function ranged(low, high) {
  const place = (ms) => {
    const seconds = ms / 1000;
    const exponent = Math.floor(Math.log2(seconds));
    return 4 * (exponent + 20 + seconds / 2 ** exponent - 1);
  };
  const from = charts.lower(low);
  const to = charts.lower(high);
  const ticks = thinned(decades(from, to).filter((tick) => tick >= from && tick <= to), 8);
  return { low, high, ticks, at: (ms) => (place(ms) - low) / (high - low) };
}
const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
function clockTicks(end, count) {
  const step = TIMES.find((one) => end / one <= count) ?? Math.ceil(end / 86400 / count) * 86400;
  return Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, place) => place * step);
}

// The axis grows in steps, so that a chart does not shift every second; the plan is its end.
const ENDS = [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
export function endOf(elapsed, planned) {
  const grown = ENDS.find((one) => one >= elapsed) ?? Math.ceil(elapsed / 86400) * 86400;
  return planned && planned >= elapsed ? Math.min(grown, planned) : planned && elapsed < planned * 1.2 ? elapsed : grown;
}

// ---- paths

function path(points) {
  let written = "";
  let x = 0;
  let y = 0;
  for (const [at, height] of points) {
    const right = Math.round(at * WIDTH);
    const down = Math.round((1 - height) * HEIGHT);
    written += written ? `${right - x} ${down - y} ` : `M${right} ${down}l`;
    [x, y] = [right, down];
  }
  return written.replace(/[ l]+$/, "");
}
// Through the middle of every interval, level to the outer edges.
function course(points, end, value) {
  const found = points.map((p) => [Math.min(1, (p.at_s + p.width_s / 2) / end), value(p)]);
  if (!found.length) return found;
  const last = points[points.length - 1];
  return [[points[0].at_s / end, found[0][1]], ...found, [Math.min(1, (last.at_s + last.width_s) / end), found[found.length - 1][1]]];
}
function pieces(points) {
  const found = [[]];
  for (const p of points) {
    if (p.requests && p.p50_ms > 0) found[found.length - 1].push(p);
    else if (found[found.length - 1].length) found.push([]);
  }
  return found.filter((piece) => piece.length);
}
// Seconds swing more than the ten seconds that older ones were joined to: a course of both would
// seem to change itself. So for the curves, and for them alone, narrow intervals share a place.
const PLACES = 300;
const MEANS = ["p50_ms", "p95_ms", "p99_ms", "response_p99_ms"];
function evened(points, end) {
  const widths = new Set(points.slice(0, -1).map((p) => p.width_s));
  if (widths.size < 2 && points.length <= 2 * PLACES) return points;
  const width = end / PLACES;
  const found = [];
  let cell = -1;
  for (const p of points) {
    const here = Math.floor(p.at_s / width + 1e-9);
    const last = found[found.length - 1];
    if (here !== cell || !last) {
      cell = here;
      found.push({ ...p });
      continue;
    }
    const answered = last.requests + p.requests;
    for (const name of MEANS) if (answered) last[name] = (last[name] * last.requests + p[name] * p.requests) / answered;
    for (const name of ["width_s", "requests", "failed", "dropped"]) last[name] += p[name];
    last.vus = Math.max(last.vus, p.vus);
  }
  return found;
}
const line = (points, kind) => svg("path", { d: path(points), class: `line ${kind}` });
function area(points, kind) {
  if (!points.length) return [];
  return [svg("path", { d: `${path(points)}V${HEIGHT}H${Math.round(points[0][0] * WIDTH)}z`, class: `area ${kind}` })];
}

// ---- the charts

const per = (p, n) => (p.width_s > 0 ? n / p.width_s : 0);
const PERCENTILES = [["p50", "p50", "p50_ms"], ["p95", "p95", "p95_ms"], ["p99", "p99", "p99_ms"]];
const RESPONSE = ["response", "p99 response", "response_p99_ms"];

const KINDS = {
  throughput: {
    title: "Throughput", unit: "requests per second",
    legend: [["requests", "requests"], ["failed", "failed"], ["dropped", "arrivals not started"]],
    of(points, end) {
      let high = 0;
      let failed = false;
      let dropped = false;
      for (const p of points) {
        high = Math.max(high, per(p, p.requests), per(p, p.dropped));
        failed ||= p.failed > 0;
        dropped ||= p.dropped > 0;
      }
      const y = linear(high);
      const curve = (name) => course(points, end, (p) => y.at(per(p, p[name])));
      const requests = curve("requests");
      const curves = [...area(requests, "requests"), line(requests, "requests")];
      if (failed) curves.push(...area(curve("failed"), "failed"), line(curve("failed"), "failed"));
      if (dropped) curves.push(line(curve("dropped"), "dropped"));
      return { y, label: charts.short, curves, shown: { requests: true, failed, dropped } };
    },
  },
  latency: {
    title: "Latency", unit: "percentiles of each interval", legend: [...PERCENTILES, RESPONSE].map(([kind, name]) => [kind, name]),
    of(points, end) {
      const late = points.some((p) => p.response_p99_ms > p.p99_ms * 1.02 + 0.05);
      const kinds = late ? [...PERCENTILES, RESPONSE] : PERCENTILES;
      let low = Infinity;
      let high = 0;
      const parts = pieces(points);
      for (const piece of parts) {
        for (const p of piece) {
          low = Math.min(low, p.p50_ms);
          for (const [, , field] of kinds) high = Math.max(high, p[field]);
        }
      }
      const y = fitting(low, high);
      const curves = [...kinds].reverse().flatMap(([kind, , field]) => parts.map((piece) => line(course(piece, end, (p) => y.at(p[field])), kind)));
      return { y, label: charts.latency, curves, shown: { p50: true, p95: true, p99: true, response: late } };
    },
  },
  heat: {
    title: "Latency heat map", unit: "requests by time and latency; the stronger, the more", legend: [],
    of(points) {
      let low = Infinity;
      let high = -Infinity;
      for (const { ranges } of points) {
        if (!ranges?.length) continue;
        low = Math.min(low, ranges[0]);
        high = Math.max(high, ranges[0] + ranges.length - 1);
      }
      return low < high ? { y: ranged(low, high), label: charts.latency, curves: [], low, high } : { y: linear(0), label: () => "", curves: [] };
    },
  },
  users: {
    title: "Virtual users", unit: "active", legend: [],
    of(points, end) {
      const y = linear(points.reduce((most, p) => Math.max(most, p.vus), 0), 3, true);
      const users = course(points, end, (p) => y.at(p.vus));
      return { y, label: charts.short, curves: [...area(users, "users"), line(users, "users")] };
    },
  },
};

export class Chart {
  constructor(kind) {
    this.kind = kind;
    this.points = [];
    this.end = 1;
    const { title, unit, legend } = KINDS[kind];
    this.svg = svg("svg", { role: "img", "aria-label": `${title}, ${unit}` });
    this.buttons = Object.fromEntries(legend.map(([curve, name]) => [curve, el("button", { type: "button", "data-curve": curve, "aria-pressed": "true" }, el("i", { class: `swatch ${curve}` }), name)]));
    this.node = el("figure", { class: `chart ${kind}`, "data-kind": kind },
      el("figcaption", {}, el("h4", {}, title), el("span", { class: "unit" }, unit),
        legend.length ? el("ul", { class: "legend" }, Object.values(this.buttons).map((button) => el("li", {}, button))) : ""),
      el("div", { class: "canvas" }, this.svg, kind === "heat" ? el("canvas") : ""));
    charts.legend(this.node);
    charts.inspect(this.node, () => this.points, () => this.end);
    if (kind === "heat") {
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.heat());
      new ResizeObserver(() => this.heat()).observe(this.node.querySelector("canvas"));
    }
  }

  draw(points, end, marks) {
    this.points = points;
    this.end = end;
    const { y, label, curves, shown = {}, low, high } = KINDS[this.kind].of(this.kind === "heat" ? points : evened(points, end), end);
    this.low = low;
    this.high = high;
    this.node.dataset.low = low ?? 0;
    this.node.dataset.high = high ?? 0;
    for (const [curve, button] of Object.entries(this.buttons)) {
      button.parentNode.hidden = !shown[curve];
      if (button.getAttribute("aria-pressed") === "false") {
        for (const one of curves) if (one.classList.contains(curve)) one.setAttribute("hidden", "");
      }
    }
    const grid = y.ticks.flatMap((tick) => {
      const height = percent(1 - y.at(tick));
      const words = label(tick).replace(/\.0+(?!\d)|(?<=\.\d)0+(?!\d)/, "");
      return [svg("line", { x1: 0, x2: "100%", y1: height, y2: height, class: "grid" }), svg("text", { x: -8, y: height, dy: "0.35em", class: "y" }, tick === 0 && this.kind !== "users" ? "0" : words)];
    });
    const times = clockTicks(end, this.node.clientWidth > 700 ? 8 : 5).map((tick, place) =>
      svg("text", { x: percent(tick / end), y: "100%", dy: "1.6em", class: place % 2 ? "x odd" : "x" }, charts.clock(tick)));
    const lines = marks.slice(-MARKS_MAX).map((mark) => svg("line", { x1: percent(mark.at_s / end), x2: percent(mark.at_s / end), y1: 0, y2: "100%" }));
    this.svg.replaceChildren(...grid, ...times,
      svg("svg", { class: "plot", width: "100%", height: "100%", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" }, ...curves),
      svg("g", { class: "mark" }, ...lines));
    this.heat();
  }

  heat() {
    if (this.kind === "heat" && this.low < this.high) charts.heat(this.node, this.points, this.end, this.low, this.high);
  }
}
