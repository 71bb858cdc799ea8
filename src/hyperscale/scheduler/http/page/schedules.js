// Schedules: the list, one with its runs and trend, the calendar, and the dialogs that make, change
// and fill them.

import {
  act, ago, badge, buttons, call, el, facts, full, get, known, link, muted, pages, redraw, span, table, tight, toast,
} from "./parts.js";

const PAGE = 100;
const KINDS = {
  loadtest: ["file", "Test file, beneath the workers' directory"],
  http: ["url", "URL"],
  python: ["call", "Module and function, as shop.jobs:send"],
  command: ["command", "Program and its words"],
};

const stateOf = (s) => badge(s.paused ? "paused" : s.next_run ? "active" : "over");
const text = (job) => job.payload.command ?? argv(job.payload.argv) ?? job.payload.file ?? job.payload.url ?? job.payload.call ?? "";
// A store may hold what no submission is allowed to say any more.
function argv(words) {
  try {
    return words && JSON.parse(words).join(" ");
  } catch {
    return "";
  }
}

export async function schedules(_, query) {
  const cursor = query.get("cursor") || "";
  const page = await get(`/schedules?limit=${PAGE}&cursor=${encodeURIComponent(cursor)}`);
  return [
    el("h1", {}, "Schedules"),
    el("p", { class: "filters" },
      known.rights.includes("operate") ? el("button", { type: "button", "data-key": "new", onclick: () => edit(null) }, "New schedule") : null,
      link("#/calendar", "Calendar")),
    table(["Schedule", "When", "State", "Next", "Last", "Fired", "Missed", "Skipped", ""], page.schedules.map((s) => [
      link(`#/schedules/${s.id}`, s.name),
      el("span", {}, el("code", {}, s.cron || "once"), s.timezone === "UTC" ? "" : muted(` ${s.timezone}`)),
      stateOf(s), tight(ago(s.next_run)), tight(ago(s.last_tick)),
      tight(String(s.fired)), tight(String(s.missed)), tight(String(s.skipped)), buttons(...acts(s))]),
      "No schedules yet: the button above, or hyperscale schedule add NAME --cron EXPR --loadtest FILE, makes one."),
    pages("#/schedules", page.cursor, cursor),
  ];
}

function acts(s) {
  const path = `/schedules/${s.id}`;
  return [
    act("Run now", "POST", `${path}/run`, { sure: `Run ${s.name} now, aside from its ticks?` }),
    s.paused ? act("Resume", "POST", `${path}/resume`) : act("Pause", "POST", `${path}/pause`),
  ];
}

export async function schedule(id, query) {
  const path = `/schedules/${encodeURIComponent(id)}`;
  const cursor = query.get("cursor") || "";
  const [s, coming, history, live] = await Promise.all([
    get(path), get(`${path}/preview?count=5`), get(`${path}/history?limit=50&cursor=${encodeURIComponent(cursor)}`),
    get(`/jobs?schedule_id=${encodeURIComponent(id)}&limit=20`)]);
  const open = live.jobs.filter((job) => !job.completed_at);
  const may = known.rights.includes("operate");
  return [
    el("h1", {}, s.name, " ", stateOf(s)),
    buttons(...acts(s),
      may ? el("button", { type: "button", class: "quiet", "data-key": "edit", onclick: () => edit(s) }, "Edit") : null,
      may ? el("button", { type: "button", class: "quiet", "data-key": "fill", onclick: () => fill(s) }, "Backfill") : null,
      act("Remove", "DELETE", path, { sure: `Remove the schedule ${s.name}? Jobs it made live on.`, then: () => "#/schedules" })),
    el("h2", {}, "Definition"),
    facts([
      ["When", el("code", {}, s.cron || `once at ${s.run_at}`)], ["Time zone", s.timezone], ["Clock changes", s.dst],
      ["Runs", el("code", {}, `${s.job.kind} ${JSON.stringify(s.job.payload)}`)],
      ["Missed ticks", s.misfire.policy.replace("_", " ")], ["Overlap", s.overlap.replace("_", " ")],
      ["Jitter", s.jitter_s ? span(s.jitter_s) : ""], ["Priority", String(s.job.priority)],
      ["Ticks", `${s.fired} fired, ${s.missed} missed, ${s.skipped} skipped`]]),
    el("h2", {}, "Coming"),
    el("ul", {}, coming.runs.map((run) => el("li", {}, full(run)))),
    open.length ? el("h2", {}, "Not ended") : "",
    open.length ? table(["Job", "State", "Due", "Worker"], open.map((job) => [
      link(`#/jobs/${job.id}`, job.name), badge(job.state), tight(ago(job.scheduled_at)), job.worker_id]), "") : "",
    trend(history.runs),
    el("h2", {}, "Runs"),
    table(["Ended", "Outcome", "Took", "Rate", "p95", "Failed", "Worker", "Error"], history.runs.map((run) => [
      link(`#/jobs/${run.job_id}`, new Date(run.ended_at).toLocaleString()), badge(run.figures.worse ? "worse" : run.status),
      tight(run.duration_s === null ? "" : span(run.duration_s)),
      tight(run.figures.rate === undefined ? "" : `${short(run.figures.rate)}/s`),
      tight(run.figures.p95_s === undefined ? "" : span(run.figures.p95_s)),
      tight(run.figures.failed_share === undefined ? "" : `${(run.figures.failed_share * 100).toFixed(2)} %`),
      run.worker_id, run.error.slice(0, 120)]), "No run has ended yet."),
    pages(`#/schedules/${encodeURIComponent(id)}`, history.cursor, cursor),
  ];
}

const short = (number) => number.toLocaleString(undefined, { maximumSignificantDigits: 4 });

// ---- the trend of a load test: one line each for rate and p95, a dot for each run

const SVG = "http://www.w3.org/2000/svg";
function shape(tag, given, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(given)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function trend(runs) {
  const measured = runs.filter((run) => run.figures.rate !== undefined).reverse();
  if (measured.length < 2) return "";
  return [
    el("h2", {}, "Trend"),
    el("div", { class: "trends" },
      line("Requests a second", measured, "rate", (value) => `${short(value)}/s`),
      line("p95", measured, "p95_s", span)),
  ];
}

function line(name, runs, field, words) {
  const values = runs.map((run) => run.figures[field] ?? 0);
  const top = Math.max(...values) || 1;
  const [wide, high] = [420, 90];
  const x = (at) => 8 + (at * (wide - 16)) / (runs.length - 1);
  const y = (value) => high - 8 - (value * (high - 16)) / top;
  const dots = runs.map((run, at) => shape("circle", {
    cx: x(at), cy: y(values[at]), r: 4, class: run.status === "COMPLETED" ? "good" : "bad",
  }, shape("title", {}, `${new Date(run.ended_at).toLocaleString()}: ${words(values[at])}, ${run.status.toLowerCase()}`)));
  const drawn = shape("svg", { viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": `${name}: ${words(values[0])} to ${words(values.at(-1))} over ${runs.length} runs` },
    shape("polyline", { points: values.map((value, at) => `${x(at)},${y(value)}`).join(" ") }), ...dots);
  return el("figure", {}, el("figcaption", {}, `${name} `, el("b", {}, words(values.at(-1))), muted(` most ${words(top)}`)), drawn);
}

// ---- the calendar: asked for once a minute, for it is many questions

const SHOWN = 60;
const PREVIEWED = 40;
const calendarOf = { at: 0, children: [] };

export async function calendar() {
  if (Date.now() - calendarOf.at < 60_000) return calendarOf.children;
  const page = await get(`/schedules?limit=${SHOWN}`);
  const active = page.schedules.filter((s) => !s.paused && s.next_run);
  const previews = await Promise.all(active.map((s) => get(`/schedules/${encodeURIComponent(s.id)}/preview?count=${PREVIEWED}`)));
  const days = new Map();
  active.forEach((s, at) => {
    for (const run of previews[at].runs) {
      const day = new Date(run).toDateString();
      const of = days.get(day) ?? days.set(day, new Map()).get(day);
      of.set(s, [...(of.get(s) ?? []), new Date(run)]);
    }
  });
  const shown = [...days].sort(([a], [b]) => new Date(a) - new Date(b)).slice(0, 14);
  const clock = (run) => run.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  calendarOf.at = Date.now();
  calendarOf.children = [
    el("h1", {}, "Calendar"),
    el("p", { class: "muted" }, `Of each schedule the next ${PREVIEWED} runs, in this browser's time.`,
      page.cursor ? ` These are the first ${SHOWN} schedules; each schedule's own page has its runs.` : ""),
    shown.length ? el("div", { class: "days" }, shown.map(([day, of]) => el("section", {},
      el("h2", {}, new Date(day).toLocaleDateString(undefined, { weekday: "short", day: "numeric", month: "short" })),
      el("ul", {}, [...of].map(([s, times]) => el("li", {}, link(`#/schedules/${s.id}`, s.name),
        muted(times.length > 4 ? ` ${times.length} × from ${clock(times[0])}` : ` ${times.map(clock).join(", ")}`))))))
    ) : el("p", { class: "muted" }, "No schedule has a run before it."),
  ];
  return calendarOf.children;
}

// ---- making and changing

const field = (id) => document.getElementById(id);
let looking = 0;

async function words() {
  const mine = ++looking;
  const cron = field("cron").value.trim();
  const said = field("means");
  if (!cron) return said.replaceChildren();
  try {
    const told = await call("POST", "/api/v1/schedules/preview", { cron, timezone: field("zone").value.trim() || "UTC", count: 3 });
    if (mine === looking) said.replaceChildren(told.words, ...told.runs.map((run) => el("div", {}, full(run))), ...told.warnings.map((one) => el("div", { class: "bad" }, one)));
  } catch (error) {
    if (mine === looking) said.replaceChildren(el("span", { class: "bad" }, error.message));
  }
}

export function prepare() {
  for (const id of ["cron", "zone"]) field(id).addEventListener("input", words);
  field("kind").addEventListener("change", kindChanged);
  field("kind").append(...Object.keys(KINDS).map((kind) => el("option", { value: kind }, kind)));
}
function kindChanged() {
  const kind = field("kind").value;
  field("what-label").textContent = KINDS[kind]?.[1] ?? "Payload, as JSON";
  field("only-loadtest").hidden = kind !== "loadtest";
}

// What a schedule runs may hold secrets that are shown as stars: it is sent again only when changed.
function edit(s) {
  const dialog = field("editor");
  const was = s && KINDS[s.job.kind] ? text(s.job) : "";
  field("editor-title").textContent = s ? `Change ${s.name}` : "New schedule";
  field("sid").value = s ? s.id : "";
  field("sid").disabled = Boolean(s);
  field("cron").value = s ? s.cron ?? "" : "0 2 * * *";
  field("zone").value = s ? s.timezone : "UTC";
  field("overlap").value = s ? s.overlap : "skip";
  field("misfire").value = s ? s.misfire.policy : "run_once";
  field("kind").value = s && KINDS[s.job.kind] ? s.job.kind : "loadtest";
  field("what").value = was;
  field("what").required = !s;
  field("compare").checked = s ? s.job.payload.compare === "last-good" : false;
  field("editor-bad").hidden = true;
  field("replaces").hidden = !s;
  kindChanged();
  words();
  const before = work();
  field("editor-form").onsubmit = async (event) => {
    if (event.submitter?.value === "no") return;
    event.preventDefault();
    const body = { cron: field("cron").value.trim(), timezone: field("zone").value.trim() || "UTC", overlap: field("overlap").value, misfire: { policy: field("misfire").value } };
    const now = work();
    if (!s || JSON.stringify(now) !== JSON.stringify(before)) body.job = now;
    if (s && !s.cron && !body.cron) delete body.cron;
    try {
      if (s) await call("PATCH", `/api/v1/schedules/${encodeURIComponent(s.id)}`, { ...body, version: s.version });
      else await call("POST", "/api/v1/schedules", { id: field("sid").value.trim(), ...body });
      dialog.close();
      toast(s ? "Changed" : "Made");
      calendarOf.at = 0;
      redraw();
    } catch (error) {
      field("editor-bad").textContent = error.message;
      field("editor-bad").hidden = false;
    }
  };
  dialog.showModal();
}
function work() {
  const kind = field("kind").value;
  const payload = { [KINDS[kind][0]]: field("what").value.trim() };
  if (kind === "loadtest" && field("compare").checked) payload.compare = "last-good";
  return { kind, payload };
}

function fill(s) {
  const dialog = field("filler");
  field("filler-title").textContent = `Make the runs of ${s.name} that never were`;
  field("filler-bad").hidden = true;
  field("filler-form").onsubmit = async (event) => {
    if (event.submitter?.value === "no") return;
    event.preventDefault();
    const instant = (id) => new Date(field(id).value).toISOString();
    try {
      const made = await call("POST", `/api/v1/schedules/${encodeURIComponent(s.id)}/backfill`, { start: instant("from"), end: instant("until") });
      dialog.close();
      toast(`${made.jobs.length} made, ${made.existing} were there, ${made.skipped} skipped`);
      redraw();
    } catch (error) {
      field("filler-bad").textContent = error.message;
      field("filler-bad").hidden = false;
    }
  };
  dialog.showModal();
}
