// The scheduler's page: asks the API every two seconds while it is looked at, and draws what it
// says.

import {
  act, afterAct, ago, badge, buttons, call, el, facts, full, get, known, link, muted, pages, span, table, tight, toast, took,
} from "./parts.js";
import { calendar, prepare, schedule, schedules } from "./schedules.js";

const EVERY_MS = 2000;
const main = document.getElementById("main");
let drawn = 0;
let timer = 0;

// ---- views: each gives the children of <main>

const nameOf = (job) => link(`#/jobs/${job.id}`, job.name);
function stateOf(job) {
  const cell = el("div", {}, badge(job.state));
  if (job.cancel_requested && !job.completed_at) cell.append(" ", muted("cancelling"));
  if (job.waiting) cell.append(" ", muted("in line"));
  if (job.state === "EXECUTING" && job.progress > 0) {
    const bar = el("i");
    bar.style.width = `${Math.round(job.progress * 100)}%`;
    cell.append(el("div", { class: "bar", role: "progressbar", "aria-valuenow": Math.round(job.progress * 100) }, bar));
  }
  return cell;
}
function runs(job) {
  const shown = words(job.payload.argv) || (Object.values(job.payload)[0] ?? "");
  return el("code", {}, `${job.kind} ${shown}`.slice(0, 90));
}
// A store may hold what no submission is allowed to say any more.
function words(argv) {
  try {
    return JSON.parse(argv ?? "[]").join(" ");
  } catch {
    return "";
  }
}

function tile(number, text, href, bad) {
  return el("a", { class: `tile ${bad ? "bad" : ""}`, href, "data-key": text }, el("b", {}, String(number)), el("span", {}, text));
}

async function overview() {
  const o = known.overview;
  const count = (state) => o.states[state] || 0;
  return [
    el("h1", {}, "Overview"),
    el("div", { class: "tiles" },
      tile(o.ready, "ready to run", "#/jobs?state=PENDING"),
      tile(count("EXECUTING") + count("CLAIMED"), "running", "#/jobs?state=EXECUTING"),
      tile(o.delayed, "due later", "#/jobs?state=PENDING"),
      tile(count("FAILED"), "failed", "#/jobs?state=FAILED", count("FAILED") > 0),
      tile(o.letters, "dead letters", "#/letters", o.letters > 0),
      tile(`${o.busy}/${o.slots}`, "slots in use", "#/workers", o.slots === 0)),
    known.rights.includes("administer") && !o.emergency.stopped
      ? el("p", { class: "buttons apart" }, el("button", { type: "button", class: "quiet", "data-key": "stop", onclick: stopEverything }, "Stop everything")) : "",
    el("h2", {}, "Next runs"),
    table(["Schedule", "When", "Next", "Runs"], o.next_runs.map((s) => [
      link(`#/schedules/${s.id}`, s.name), el("code", {}, s.cron || "once"), tight(ago(s.next_run)), runs(s.job)]),
      "No schedule has a run before it."),
    el("h2", {}, "Running now"),
    table(["Job", "State", "Worker", "For"], o.running.map((job) => [
      nameOf(job), stateOf(job), job.worker_id, tight(took(job.started_at, o.now))]), "Nothing runs."),
    el("h2", {}, "Latest failures"),
    table(["Job", "Why", "When", ""], o.failures.map((job) => [
      nameOf(job), job.failure_reason, tight(ago(job.completed_at)),
      buttons(act("Retry", "POST", `/jobs/${job.id}/retry`, { sure: `Run ${job.name} again, as a new job?` }))]), "Nothing failed."),
  ];
}

function stopEverything() {
  const dialog = document.getElementById("stop");
  dialog.returnValue = "";
  dialog.showModal();
  dialog.addEventListener("close", async () => {
    if (dialog.returnValue !== "yes") return;
    const reason = document.getElementById("reason").value.trim();
    const cancel_running = document.getElementById("running").checked;
    await call("POST", "/api/v1/emergency", { reason, cancel_running }).catch((error) => toast(error.message));
    draw();
  }, { once: true });
}
function stopped(emergency) {
  const line = document.getElementById("stopped");
  line.hidden = !emergency.stopped;
  if (!emergency.stopped) return;
  line.replaceChildren(
    el("span", {}, `${emergency.actor} stopped everything `, ago(emergency.since), emergency.reason ? `: ${emergency.reason}` : "",
      emergency.cancel_running ? ". What ran is being cancelled." : ". What runs may finish."),
    act("Let it go on", "DELETE", "/emergency", { right: "administer", sure: "Jobs start again. Go on?" }) ?? "");
}

function jobTable(jobs, empty) {
  return table(["Job", "State", "Due", "Took", "Worker", "Error", ""], jobs.map((job) => [
    nameOf(job), stateOf(job), tight(ago(job.scheduled_at)), tight(took(job.started_at, job.completed_at)),
    job.worker_id, job.failure_reason.slice(0, 120), buttons(...jobActs(job))]), empty);
}
function jobActs(job) {
  const path = `/jobs/${job.id}`;
  return job.completed_at
    ? [act("Retry", "POST", `${path}/retry`, { sure: `Run ${job.name} again, as a new job?`, then: (made) => `#/jobs/${made.id}` })]
    : [act("Cancel", "POST", `${path}/cancel`, { sure: `Cancel the job ${job.name}?` })];
}

const STATES = ["", "PENDING", "CLAIMED", "EXECUTING", "COMPLETED", "FAILED", "CANCELLED"];
const FILTERS = [["name", "Name"], ["schedule_id", "Schedule"], ["kind", "Kind"], ["worker", "Worker"], ["tag", "Tag, as key=value"]];
async function jobs(_, query) {
  const chosen = Object.fromEntries(["state", ...FILTERS.map(([key]) => key)].map((key) => [key, query.get(key) || ""]).filter(([, value]) => value));
  const cursor = query.get("cursor") || "";
  const asked = new URLSearchParams({ ...chosen, limit: "50", cursor });
  const page = await get(`/jobs?${asked}`);
  const here = Object.keys(chosen).length ? `#/jobs?${new URLSearchParams(chosen)}` : "#/jobs";
  const select = el("select", { name: "state", "data-key": "state" }, STATES.map((one) =>
    el("option", { value: one, selected: one === (chosen.state || "") }, one ? one.toLowerCase() : "all states")));
  const inputs = FILTERS.map(([key, label]) => el("input", { name: key, placeholder: label, "aria-label": label, value: chosen[key] || "", "data-key": key }));
  const form = el("form", { class: "filters", role: "search" }, select, inputs, el("button", { class: "quiet", "data-key": "find" }, "Find"),
    Object.keys(chosen).length ? link("#/jobs", "All jobs") : null);
  const find = (event) => {
    event.preventDefault();
    const said = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim()));
    location.hash = said.size ? `#/jobs?${said}` : "#/jobs";
  };
  form.addEventListener("submit", find);
  select.addEventListener("change", find);
  return [
    el("h1", {}, "Jobs"),
    form,
    jobTable(page.jobs, Object.keys(chosen).length ? "No such jobs." : "No jobs."),
    pages(here, page.cursor, cursor),
  ];
}

// A load test's output begins with a line for programs.
const readable = (text) => (text.startsWith('{"schema":"hyperscale.results/') ? text.slice(text.indexOf("\n") + 1).trimStart() : text);

async function job(id) {
  const path = `/jobs/${encodeURIComponent(id)}`;
  const [j, history] = await Promise.all([get(path), get(`${path}/history`)]);
  const last = history.attempts.at(-1);
  const log = last ? await get(`${path}/logs`).catch(() => null) : null;
  const measured = history.attempts.some((one) => one.has_results);
  return [
    el("h1", {}, j.name, " ", badge(j.state)),
    buttons(...jobActs(j), measured ? el("button", { type: "button", class: "quiet", "data-key": "results", onclick: () => save(j) }, "Save results") : null),
    el("h2", {}, "Job"),
    facts([
      ["Id", el("code", {}, j.id)], ["Schedule", j.schedule_id ? link(`#/schedules/${j.schedule_id}`, j.schedule_id) : ""],
      ["Runs", el("code", {}, `${j.kind} ${JSON.stringify(j.payload)}`)], ["Error", j.failure_reason],
      ["Due", full(j.scheduled_at)], ["Started", full(j.started_at)], ["Ended", full(j.completed_at)],
      ["Took", took(j.started_at, j.completed_at)], ["Worker", j.worker_id],
      ["Retries", `${j.retry_count} of ${j.max_retries}`], ["Priority", String(j.priority)],
      ["Tags", Object.entries(j.tags).map(([key, value]) => `${key}=${value}`).join(", ")],
      ["Correlation id", el("code", {}, j.correlation_id)]]),
    el("h2", {}, "Attempts"),
    table(["Ended", "Outcome", "Worker", "Waited", "Took", "Exit", "Error"], history.attempts.map((a) => [
      tight(ago(a.ended_at)), badge(a.outcome), a.worker_id, tight(span(a.queue_wait_s)),
      tight(a.duration_s === null ? "" : span(a.duration_s)), tight(a.exit_code === null ? "" : String(a.exit_code)), a.error]), "None has ended."),
    el("h2", {}, "Output"),
    log && log.log ? el("pre", { tabindex: "0" }, readable(log.log)) : el("p", { class: "muted" }, "Nothing was written."),
  ];
}

// For `hyperscale report FILE`, which makes the HTML page of it, and `hyperscale compare`.
async function save(j) {
  const results = await get(`/jobs/${encodeURIComponent(j.id)}/results`);
  const address = URL.createObjectURL(new Blob([JSON.stringify(results, null, 2)], { type: "application/json" }));
  el("a", { href: address, download: `${j.name}-${j.id}.json` }).click();
  URL.revokeObjectURL(address);
}

async function workers(_, query) {
  const cursor = query.get("cursor") || "";
  const { workers: found, cursor: next } = await get(`/workers?limit=100&cursor=${encodeURIComponent(cursor)}`);
  return [
    el("h1", {}, "Workers"),
    table(["Worker", "State", "Jobs", "Capabilities", "Heard of", "Since", ""], found.map((w) => [
      w.id, badge(w.state), tight(`${w.current_jobs} of ${w.capacity}`), w.capabilities.join(", "),
      tight(ago(w.last_heartbeat)), tight(ago(w.started_at)),
      buttons(
        ["AVAILABLE", "BUSY"].includes(w.state)
          ? act("Drain", "POST", `/workers/${w.id}/drain`, { sure: `Let ${w.id} finish and take nothing new?` }) : null,
        w.state === "DRAINING" ? act("Take back", "DELETE", `/workers/${w.id}/drain`) : null,
        w.state === "UNAVAILABLE" ? act("Forget", "DELETE", `/workers/${w.id}`, { right: "administer" }) : null)]),
      "No worker is there: hyperscale scheduler worker starts one."),
    pages("#/workers", next, cursor),
  ];
}

async function letters(_, query) {
  const cursor = query.get("cursor") || "";
  const { letters: found, cursor: next } = await get(`/dead-letters?limit=100&cursor=${encodeURIComponent(cursor)}`);
  return [
    el("h1", {}, "Dead letters"),
    el("p", { class: "muted" }, "Jobs that failed for good. Replay makes a new job of it; drop forgets it."),
    table(["Job", "Why", "When", "Tries", ""], found.map((one) => [
      nameOf(one.job), one.reason, tight(ago(one.at)), tight(String(one.job.retry_count + 1)),
      buttons(
        act("Replay", "POST", `/dead-letters/${one.id}/replay`, { sure: `Run ${one.job.name} again, as a new job?` }),
        act("Drop", "DELETE", `/dead-letters/${one.id}`, { sure: `Forget that ${one.job.name} failed?` }))]),
      "None. Nothing has failed for good."),
    pages("#/letters", next, cursor),
  ];
}

// ---- drawing

const VIEWS = { "": overview, schedules, calendar: () => calendar(), jobs, workers, letters };
const DETAILS = { schedules: schedule, jobs: job };

function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, id] = path.split("/");
  const view = id ? DETAILS[name] : VIEWS[name];
  return { name, view: view || overview, id: id ? decodeURIComponent(id) : "", query: new URLSearchParams(query) };
}

async function draw(focus = false) {
  const mine = ++drawn;
  clearTimeout(timer);
  const { name, view, id, query } = place();
  for (const one of document.querySelectorAll("nav a")) {
    if (one.dataset.view === (name === "calendar" ? "schedules" : name || "overview")) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  try {
    const o = await get("/overview");
    known.overview = o;
    known.rights = o.rights;
    known.now = Date.parse(o.now);
    if (mine !== drawn) return;
    health(o);
    stopped(o.emergency);
    const children = await view(id, query);
    if (mine !== drawn) return;
    replace(children, focus);
    trouble("");
  } catch (error) {
    if (mine !== drawn) return;
    if (error.status === 404) replace([el("h1", {}, "Not there"), el("p", { class: "muted" }, error.message)], focus);
    else trouble(error.status ? error.message : "The scheduler does not answer; trying again.");
  }
  if (mine === drawn && !document.hidden) timer = setTimeout(draw, EVERY_MS);
}

// Somebody chooses, writes, or has marked a text to copy it: what they look at stays.
function busy(active) {
  const marked = getSelection();
  return (main.contains(active) && ["SELECT", "INPUT"].includes(active.tagName))
    || (marked && !marked.isCollapsed && main.contains(marked.anchorNode));
}

function replace(children, focus) {
  const active = document.activeElement;
  if (!focus && busy(active)) return;
  const key = active && active.dataset ? active.dataset.key : null;
  const scrolled = main.querySelector("pre")?.scrollTop ?? 0;
  main.replaceChildren(...children.flat(Infinity));
  const pre = main.querySelector("pre");
  if (pre) pre.scrollTop = scrolled;
  if (focus) main.focus({ preventScroll: true });
  else if (key) [...main.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key)?.focus({ preventScroll: true });
}

function health(o) {
  const bad = o.degraded || !o.leader;
  document.getElementById("dot").className = `dot ${bad || o.emergency.stopped ? "bad" : "good"}`;
  document.getElementById("where").textContent =
    o.degraded || (o.leader ? `${o.node}${o.leading ? " leads" : " follows"} · ${o.actor}` : "nobody leads");
}
function trouble(text) {
  const line = document.getElementById("trouble");
  line.textContent = text;
  line.hidden = !text;
  if (text) document.getElementById("dot").className = "dot bad";
}

const theme = localStorage.getItem("theme");
if (theme) document.documentElement.dataset.theme = theme;
document.getElementById("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  const next = now === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("theme", next);
});
prepare();
afterAct(() => draw());
addEventListener("hashchange", () => { scrollTo(0, 0); draw(true); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) draw(); });
draw();
