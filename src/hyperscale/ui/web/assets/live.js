// The run that is under way: what it does now, how it went, what failed, and the levers.

import { asked, attribute, call, el, table, text, told } from "./parts.js";
import { Chart, endOf } from "./draw.js";
import { Steps } from "./steps.js";

const STATES = { preparing: "warn", running: "good", paused: "warn", stopping: "warn", finished: "" };
const NONE = [];
const BY = 0.1; // of its users or its rate, for one press of + or -

export class Live {
  constructor(known) {
    this.known = known;
    this.site = {};
    this.chosen = "";
    this.drawn = {};
    this.charts = ["throughput", "latency", "heat", "users"].map((kind) => new Chart(kind));
    this.steps = new Steps();
    this.build();
    document.addEventListener("keydown", (event) => this.key(event));
  }

  build() {
    this.name = el("h1");
    this.state = el("span", { class: "state" });
    this.time = el("span", { class: "time number" });
    this.bar = el("i");
    this.facts = el("p", { class: "facts" });
    this.pause = el("button", { type: "button", onclick: () => this.toggle() }, "Pause");
    this.users = el("input", { type: "number", min: 1, max: 10000000, "aria-label": "Users the workflow shall have" });
    this.scale = el("form", { class: "lever", onsubmit: (event) => { event.preventDefault(); this.setUsers(); } },
      el("label", {}, "Users ", this.users), el("button", {}, "Set"));
    this.percent = el("input", { type: "number", min: 1, max: 10000, value: 110, "aria-label": "Percent of the present rate" });
    this.rate = el("form", { class: "lever", onsubmit: (event) => { event.preventDefault(); this.setRate(Number(this.percent.value)); } },
      el("label", {}, "Rate × ", this.percent, " %"), el("button", {}, "Set"));
    this.stop = el("button", { type: "button", class: "danger", onclick: () => this.end() }, "Stop");
    this.levers = el("div", { class: "levers" }, this.pause, this.scale, this.rate, this.stop,
      el("button", { type: "button", class: "quiet", "aria-label": "Keys", onclick: () => asked("keys") }, "?"));
    this.files = el("div", { class: "levers" });
    this.verdict = el("section", { class: "verdict", hidden: true, role: "status" });
    this.notices = el("ul", { class: "notices" });
    this.tiles = el("dl", { class: "tiles live" });
    this.tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Workflows" });
    this.grid = el("div", { class: "charts" }, this.charts.map((chart) => chart.node));
    this.load = el("p", { class: "lead" });
    this.parts = Object.fromEntries(["thresholds", "failures", "datacenters", "workers", "events", "health"].map((name) => [name, el("section", { id: name, hidden: true })]));
    this.failures = new Failures(this.parts.failures);
    this.empty = el("p", { class: "empty" }, "Waiting for the run…");
    this.body = el("div", { hidden: true },
      el("div", { class: "head" },
        el("div", { class: "title" }, this.name, el("p", { class: "now" }, this.state, this.time)), this.levers, this.files),
      el("div", { class: "progress", role: "progressbar", "aria-label": "Share of the plan" }, this.bar),
      this.verdict, this.notices, this.tiles, this.tabs, this.load, this.grid,
      this.parts.thresholds, this.parts.failures, this.steps.node, this.parts.datacenters, this.parts.workers,
      el("div", { class: "columns" }, this.parts.events, this.parts.health), this.facts);
    this.node = el("div", { class: "live" }, this.empty, this.body);
  }

  draw() {
    const { set, series, steps } = this.known;
    const { run, workflows = [] } = set;
    this.starting();
    if (!run) return;
    this.empty.hidden = true;
    this.body.hidden = false;
    const workflow = workflows.find((one) => one.name === this.chosen) ?? workflows.find((one) => one.state === "running") ?? workflows[0];
    this.head(run, workflows, workflow);
    this.figures(workflows, series);
    if (workflow) {
      this.choices(workflows, workflow);
      const points = series.get(workflow.name) ?? [];
      const end = run.state === "finished" ? Math.max(1, ...points.slice(-1).map((p) => p.at_s + p.width_s)) : endOf(Math.max(workflow.elapsed_s, 1), workflow.planned_s);
      const shape = `${workflow.name} ${points.length} ${points[points.length - 1]?.requests} ${end} ${this.grid.clientWidth} ${workflow.marks.length}`;
      if (this.drawn.shape !== shape) for (const chart of this.charts) chart.draw(points, end, workflow.marks.filter((mark) => mark.at_s <= end));
      this.drawn.shape = shape;
      this.steps.show(set.names?.[workflow.name] ?? [], steps.get(workflow.name) ?? []);
    }
    this.changed("notices", set.notices, (all) => this.notices.replaceChildren(...all.map(({ label, text: said }) => el("li", {}, el("b", {}, label), " ", said))));
    this.changed("thresholds", set.thresholds, (all) => this.section("thresholds", all.length, () => [el("h2", {}, "Thresholds"), thresholds(all)]));
    this.changed("failures", set.failures, (all) => this.failures.show(all));
    this.changed("datacenters", set.datacenters, (all) => this.section("datacenters", all.length, () => [el("h2", {}, "Datacenters"), datacenters(all)]));
    this.changed("workers", run.state === "finished" ? NONE : set.workers ?? NONE, (all) => this.section("workers", all.length, () => [el("h2", {}, "Workers"), workers(all)]));
    this.changed("events", set.events, (all) => this.section("events", all.length, () => [el("h2", {}, "Events"), events(all)]));
    this.changed("health", set.health, (health) => this.section("health", health.cores.length, () => generator(health)));
  }

  // A section is drawn again when it was told anew: the server tells only what changed.
  changed(name, value, draw) {
    if (value === undefined || this.drawn[name] === value) return;
    this.drawn[name] = value;
    draw(value);
  }

  section(name, full, parts) {
    this.parts[name].hidden = !full;
    if (full) this.parts[name].replaceChildren(...parts());
  }

  starting() {
    const { started, run } = this.known.set;
    if (run && !(started?.trouble)) return;
    if (!started) text(this.empty, this.site.starts ? "No run is under way: start one, or look at earlier ones." : "Waiting for the run…");
    else if (started.trouble) this.empty.replaceChildren(el("b", { class: "alarm" }, `${started.file} did not run to its end`), el("pre", {}, started.trouble));
    else text(this.empty, `${started.file} is being prepared…`);
    this.empty.hidden = false;
  }

  head(run, workflows, workflow) {
    const { started } = this.known.set;
    text(this.name, run.name || "Load test");
    document.title = `${run.state === "finished" ? run.verdict?.title ?? "Over" : run.state}: ${run.name || "load test"}`;
    text(this.state, run.state);
    this.state.className = `state ${STATES[run.state] ?? ""}`;
    const planned = workflows.length === 1 && workflow?.planned_s;
    text(this.time, planned && run.state !== "finished" ? `${charts.clock(Math.floor(workflow.elapsed_s))} / ${charts.clock(Math.round(planned))}` : charts.clock(Math.floor(run.elapsed_s)));
    const done = workflows.length ? workflows.reduce((sum, one) => sum + (one.done ?? 0), 0) / workflows.length : 0;
    this.bar.style.width = `${100 * (run.state === "finished" ? 1 : done)}%`;
    this.bar.parentNode.setAttribute("aria-valuenow", Math.round(100 * done));
    const over = run.state === "finished";
    this.levers.hidden = over;
    text(this.pause, run.state === "paused" ? "Resume" : "Pause");
    this.pause.disabled = !["running", "paused"].includes(run.state);
    text(this.stop, run.state === "stopping" ? "Stop now" : "Stop");
    this.scale.hidden = !workflow || workflow.open || workflow.state === "finished";
    this.rate.hidden = !workflow?.open || workflow.state === "finished";
    if (workflow && document.activeElement !== this.users) this.users.value = workflow.vus;
    const name = started?.run ?? "";
    const ready = over && Boolean(name || this.known.set.files);
    if (this.drawn.ready !== `${ready} ${name}`) {
      this.drawn.ready = `${ready} ${name}`;
      const query = `?run=${encodeURIComponent(name)}`;
      this.files.replaceChildren(...(ready ? [
        el("a", { class: "button primary", href: `/api/report${query}`, target: "_blank", rel: "noopener" }, "Report"),
        el("a", { class: "button", href: `/api/report${query}&download` }, "Download report"),
        el("a", { class: "button", href: `/api/results${query}&download` }, "JSON")] : []));
    }
    this.files.hidden = !ready;
    this.changed("verdict", run.verdict ?? null, (verdict) => {
      this.verdict.hidden = !verdict;
      if (!verdict) return;
      this.verdict.className = `verdict ${verdict.tone}`;
      this.verdict.replaceChildren(el("span", { class: "symbol", "aria-hidden": "true" }, { good: "✓", bad: "✕", warn: "!" }[verdict.tone]),
        el("div", {}, el("h2", {}, verdict.title), el("p", {}, verdict.why)));
    });
    const facts = [run.started_at && `started ${run.started_at.replace("T", " ").replace("+00:00", "")} UTC`, run.host, run.command];
    text(this.facts, facts.filter(Boolean).join(" · "));
  }

  // The last whole interval of each workflow that runs, together.
  figures(workflows, series) {
    const { totals, run } = this.known.set;
    let rate = 0;
    let latest = null;
    for (const workflow of workflows) {
      const points = series.get(workflow.name) ?? [];
      const point = points[points.length - 2] ?? points[points.length - 1];
      if (!point || workflow.state === "finished" && run.state !== "finished") continue;
      rate += point.requests / (point.width_s || 1);
      if (!latest || point.requests > latest.requests) latest = point;
    }
    const over = run.state === "finished";
    const calls = totals.requests + totals.unsent;
    const { whole } = totals;
    if (whole) latest = whole;
    const words = whole ? "" : over ? " at the end" : " now";
    const users = workflows.reduce((sum, one) => sum + one.vus, 0);
    const rows = [
      ["Requests/s", charts.short(over ? totals.rate : rate), `${charts.count(totals.requests)} in all`, ""],
      [`p50${words}`, latest ? charts.latency(latest.p50_ms) : "–", latest ? `p95 ${charts.latency(latest.p95_ms)}` : "", ""],
      [`p99${words}`, latest ? charts.latency(latest.p99_ms) : "–", latest ? `max ${charts.latency(latest.max_ms)}` : "", ""],
      ["Failed", charts.share(totals.failed, calls), `${charts.count(totals.failed)} calls${totals.unsent ? `, ${charts.count(totals.unsent)} never sent` : ""}`, totals.failed ? "alarm" : ""],
      [over ? "Most users" : "Virtual users", charts.count(over ? totals.vus_max : users), totals.dropped ? `${charts.count(totals.dropped)} arrivals not started` : `${charts.count(totals.iterations)} iterations`, ""],
    ];
    if (!this.tiles.children.length) this.tiles.append(...rows.map(() => el("div", {}, el("dt"), el("dd"), el("dd", { class: "sub" }))));
    rows.forEach(([name, value, below, kind], place) => {
      const [dt, dd, sub] = this.tiles.children[place].children;
      text(dt, name);
      text(dd, value);
      attribute(dd, "class", kind);
      text(sub, below);
    });
  }

  choices(workflows, workflow) {
    text(this.load, [workflow.load, workflow.error].filter(Boolean).join(" · "));
    this.tabs.hidden = workflows.length < 2;
    const key = workflows.map((one) => `${one.name} ${one.state}`).join("\n") + workflow.name;
    if (this.tabs.hidden || this.drawn.tabs === key) return;
    this.drawn.tabs = key;
    this.tabs.replaceChildren(...workflows.map((one) => el("button", {
      type: "button", role: "tab", "aria-selected": String(one === workflow), onclick: () => this.choose(one.name),
    }, one.name, el("small", {}, one.state))));
  }

  choose(name) {
    this.chosen = name;
    this.draw();
  }

  // ---- levers

  get workflow() {
    const { workflows = [] } = this.known.set;
    return workflows.find((one) => one.name === this.chosen) ?? workflows.find((one) => one.state === "running") ?? workflows[0];
  }

  steer(command) {
    return told(call("POST", "/api/steer", command));
  }

  toggle() {
    const state = this.known.set.run?.state;
    if (state === "paused") this.steer({ action: "resume" });
    else if (state === "running") this.steer({ action: "pause" });
  }

  setUsers() {
    if (this.workflow) this.steer({ action: "scale", workflow: this.workflow.name, vus: Math.round(Number(this.users.value)) });
    this.users.blur();
  }

  setRate(percent) {
    if (this.workflow) this.steer({ action: "rate", workflow: this.workflow.name, percent: Math.round(percent) });
  }

  change(sign) {
    const { workflow } = this;
    if (!workflow) return;
    if (workflow.open) this.setRate(100 * (1 + sign * BY));
    else this.steer({ action: "scale", workflow: workflow.name, delta: sign * Math.max(1, Math.round(workflow.vus * BY)) });
  }

  async end() {
    if (this.known.set.run?.state === "stopping") {
      this.steer({ action: "kill" });
      return;
    }
    const answer = await asked("sure", "Stop the run? Gracefully lets iterations under way finish.");
    if (answer === "stop" || answer === "kill") this.steer({ action: answer });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.node.isConnected || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const over = this.levers.hidden;
    const keys = {
      p: () => over || this.toggle(),
      "+": () => over || this.change(1),
      "=": () => over || this.change(1),
      "-": () => over || this.change(-1),
      s: () => over || this.end(),
      "/": () => this.steps.filter.focus(),
      "?": () => asked("keys"),
    };
    const number = /^[1-9]$/.test(event.key) && this.known.set.workflows?.[Number(event.key) - 1];
    if (number) this.choose(number.name);
    else if (!keys[event.key]) return;
    else keys[event.key]();
    event.preventDefault();
  }
}

// ---- sections

function thresholds(all) {
  const rows = [...all].sort((a, b) => Number(a.passed || !a.judged) - Number(b.passed || !b.judged)).map((one) => {
    const [words, mood] = !one.judged ? ["·", "faint"] : one.passed ? ["✓ met", "good"] : ["✕ crossed", "alarm"];
    return [el("span", {}, `${one.scope} `, el("code", {}, one.expression)), one.judged ? one.actual : "nothing to judge yet", [words, mood]];
  });
  return table("Thresholds", [["Threshold"], ["Measured", true], ["Now"]], rows, "thresholds");
}

function datacenters(all) {
  return table("Datacenters", [["Datacenter"], ["Status"], ["Requests", true], ["Failed", true]], all.map((one) => [
    one.name, [one.status, one.status === "lost" ? "alarm" : ""], charts.count(one.requests), [charts.share(one.failed, one.requests), one.failed ? "alarm" : ""]]));
}

function workers(all) {
  const moods = { healthy: "good", draining: "", degraded: "alarm", suspect: "alarm" };
  return table("Workers", [["Worker"], ["State"], ["Requests", true], ["Rate", true], ["CPU", true], ["Memory", true]], all.map((one) => [
    el("span", {}, one.worker, one.warnings.length ? el("small", {}, one.warnings.join("; ")) : ""), [one.state, moods[one.state] ?? ""],
    charts.count(one.requests), charts.rate(one.rate), `${Math.round(one.cpu)} %`, `${Math.round(one.memory)} %`]));
}

function events(all) {
  return el("ol", { class: "marks log" }, [...all].reverse().map((one) => el("li", {},
    el("b", {}, one.at_s === null ? "lost" : charts.clock(Math.floor(one.at_s))), one.who ? `${one.who}: ` : "", one.text)));
}

function generator({ saturation, cost, cores }) {
  const percent = (share) => `${Math.round(100 * share)} %`;
  return [
    el("h2", {}, "Load generator"),
    el("p", { class: saturation ? "lead alarm" : "lead" }, saturation || "It keeps up: the latencies are the target's, not its own."),
    cost ? el("p", { class: "lead" }, `Making the load takes ${cost}.`) : "",
    table("Use of the generator's cores", [["Core"], ["CPU mean", true], ["Peak", true], ["Loop lag p99", true], ["Memory", true]], cores.map((core) => [
      `${core.core} · ${core.workflow}`, [percent(core.cpu_mean), core.cpu_mean > 0.9 ? "alarm" : ""], percent(core.cpu_max), charts.latency(core.lag_p99_ms), `${charts.short(core.rss_mb)} MB`])),
  ];
}

// By cause, the most frequent first; what is open stays open while the counts go up.
class Failures {
  constructor(node) {
    this.node = node;
    this.kinds = new Map();
    this.list = el("ol", { class: "failures" });
    node.replaceChildren(el("h2", {}, "Failures"), this.list);
  }

  show(all) {
    this.node.hidden = !all.length;
    const kept = new Map();
    for (const one of all) {
      const key = JSON.stringify([one.workflow, one.step, one.message]);
      const item = this.kinds.get(key) ?? failure(one);
      text(item.querySelector("b"), `${charts.count(one.count)} ×`);
      kept.set(key, item);
    }
    this.kinds = kept;
    const items = [...kept.values()];
    if (items.some((item, place) => this.list.children[place] !== item) || this.list.children.length !== items.length) this.list.replaceChildren(...items);
  }
}

function failure(one) {
  const { exchange } = one;
  return el("li", {}, el("details", {},
    el("summary", {}, el("b", { class: "alarm" }), " ", el("strong", {}, one.step), " ", el("span", {}, one.message), " ", one.where ? el("code", {}, one.where) : ""),
    one.when ? el("p", { class: "first" }, one.when) : "",
    one.traceback ? el("pre", {}, one.traceback) : "",
    exchange ? el("div", { class: "pair" }, el("pre", { "aria-label": "Request" }, exchange.asked), el("pre", { "aria-label": "Answer" }, exchange.told)) : "",
    [...new Set(one.samples)].filter((sample) => !one.message.includes(sample)).map((sample) => el("p", {}, el("code", {}, sample)))));
}
