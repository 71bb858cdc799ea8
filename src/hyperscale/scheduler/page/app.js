// The scheduler's page: asks the API every two seconds while it is looked at, and draws what it
// says. Everything from the API enters as text, never as markup.

const EVERY_MS = 2000;
const RANK = { viewer: 0, operator: 1, admin: 2 };
const main = document.getElementById("main");
const known = { role: "viewer", now: Date.now() };
let drawn = 0;
let timer = 0;

// ---- the API

async function call(method, path) {
  const token = sessionStorage.getItem("token");
  const answer = await fetch(path, {
    method,
    headers: token ? { Authorization: `Bearer ${token}` } : {},
    cache: "no-store",
  });
  if (answer.status === 401) {
    await login();
    return call(method, path);
  }
  const body = answer.status === 204 ? {} : await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.detail || answer.statusText), { status: answer.status });
  return body;
}
const get = (path) => call("GET", `/api/v1${path}`);

let asking = null;
function login() {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("login");
    dialog.addEventListener("close", () => {
      sessionStorage.setItem("token", document.getElementById("token").value.trim());
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

// ---- elements

function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "onclick") made.addEventListener("click", value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}
const link = (href, text) => el("a", { href, "data-key": href + text }, text);
const muted = (text) => el("span", { class: "muted" }, text);

const COLOURS = {
  COMPLETED: "good", AVAILABLE: "good", active: "good", FAILED: "bad", UNAVAILABLE: "bad", LOST: "bad",
  EXECUTING: "busy", CLAIMED: "busy", BUSY: "busy", DRAINING: "warn", paused: "warn", RELEASED: "warn",
};
const badge = (state) => el("span", { class: `state ${COLOURS[state] || ""}` }, state.toLowerCase());

function table(heads, rows, empty) {
  if (!rows.length) return el("p", { class: "muted" }, empty);
  const body = rows.map((cells) => el("tr", {}, cells.map((cell, column) => {
    const head = heads[column];
    const content = cell instanceof Object && !(cell instanceof Node) ? cell.content : cell;
    const kind = head === "" ? "actions" : (cell && cell.kind) || "";
    return el("td", { "data-label": head, class: kind }, content ?? "");
  })));
  return el("table", {},
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, body));
}
const tight = (content) => ({ content, kind: "tight number" });

function facts(rows) {
  return el("dl", {}, rows.filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

// ---- times

function span(seconds) {
  const size = Math.abs(seconds);
  if (size > 0 && size < 1) return `${Math.max(1, Math.round(size * 1000))} ms`;
  if (size < 90) return `${size < 10 ? Math.round(size * 10) / 10 : Math.round(size)} s`;
  if (size < 5400) return `${Math.round(size / 60)} min`;
  if (size < 129600) return `${Math.round(size / 3600)} h`;
  return `${Math.round(size / 86400)} d`;
}
function ago(text) {
  if (!text) return "";
  const seconds = (Date.parse(text) - known.now) / 1000;
  const words = seconds >= 0 ? `in ${span(Math.round(seconds))}` : `${span(Math.round(seconds))} ago`;
  return el("time", { datetime: text, title: new Date(text).toLocaleString() }, words);
}
const full = (text) => (text ? el("span", {}, new Date(text).toLocaleString(), " ", muted("("), ago(text), muted(")")) : "");
function took(from, to) {
  return from && to ? span((Date.parse(to) - Date.parse(from)) / 1000) : "";
}

// ---- acts

function act(label, method, path, { role = "operator", sure = "", quiet = true, then = null } = {}) {
  if (RANK[known.role] < RANK[role]) return null;
  const button = el("button", { type: "button", class: quiet ? "quiet" : "", "data-key": `${method} ${path}` }, label);
  button.addEventListener("click", async () => {
    if (sure && !(await confirmed(sure, label))) return;
    button.disabled = true;
    try {
      const answer = await call(method, `/api/v1${path}`);
      toast(`${label}: done`);
      if (then) location.hash = then(answer);
    } catch (error) {
      toast(error.message);
    }
    draw();
  });
  return button;
}
const buttons = (...made) => el("p", { class: "buttons" }, made);

function confirmed(question, label) {
  const dialog = document.getElementById("confirm");
  document.getElementById("question").textContent = question;
  document.getElementById("yes").textContent = label;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) =>
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}
let fading = 0;
function toast(text) {
  const place = document.getElementById("toast");
  place.textContent = text;
  place.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => { place.hidden = true; }, 4000);
}

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
const runs = (job) => el("code", {}, `${job.kind} ${Object.values(job.payload)[0] ?? ""}`.slice(0, 90));

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
      buttons(act("Retry", "POST", `/jobs/${job.id}/retry`))]), "Nothing failed."),
  ];
}

async function schedules() {
  const { schedules: found } = await get("/schedules?limit=1000");
  return [
    el("h1", {}, "Schedules"),
    table(["Schedule", "When", "State", "Next", "Last", "Fired", "Missed", "Skipped", ""], found.map((s) => [
      link(`#/schedules/${s.id}`, s.name),
      el("span", {}, el("code", {}, s.cron || "once"), s.timezone === "UTC" ? "" : muted(` ${s.timezone}`)),
      badge(s.paused ? "paused" : s.next_run ? "active" : "over"),
      tight(ago(s.next_run)), tight(ago(s.last_tick)), tight(String(s.fired)), tight(String(s.missed)), tight(String(s.skipped)),
      buttons(...scheduleActs(s))]),
      "No schedules yet: hyperscale schedule add NAME --cron EXPR --loadtest FILE makes one."),
  ];
}
function scheduleActs(s) {
  const path = `/schedules/${s.id}`;
  return [
    act("Run now", "POST", `${path}/run`),
    s.paused ? act("Resume", "POST", `${path}/resume`) : act("Pause", "POST", `${path}/pause`),
  ];
}

async function schedule(id) {
  const path = `/schedules/${encodeURIComponent(id)}`;
  const [s, coming, history] = await Promise.all([
    get(path), get(`${path}/preview?count=5`), get(`/jobs?schedule_id=${encodeURIComponent(id)}&limit=50`)]);
  return [
    el("h1", {}, s.name, " ", badge(s.paused ? "paused" : s.next_run ? "active" : "over")),
    buttons(...scheduleActs(s),
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
    el("h2", {}, "Runs"),
    jobTable(history.jobs, "No run yet."),
  ];
}

function jobTable(jobs, empty) {
  return table(["Job", "State", "Due", "Took", "Worker", "Error", ""], jobs.map((job) => [
    nameOf(job), stateOf(job), tight(ago(job.scheduled_at)), tight(took(job.started_at, job.completed_at)),
    job.worker_id, job.failure_reason.slice(0, 120), buttons(...jobActs(job))]), empty);
}
function jobActs(job) {
  const path = `/jobs/${job.id}`;
  return job.completed_at
    ? [act("Retry", "POST", `${path}/retry`, { then: (made) => `#/jobs/${made.id}` })]
    : [act("Cancel", "POST", `${path}/cancel`, { sure: `Cancel the job ${job.name}?` })];
}

const STATES = ["", "PENDING", "CLAIMED", "EXECUTING", "COMPLETED", "FAILED", "CANCELLED"];
async function jobs(_, query) {
  const state = query.get("state") || "";
  const cursor = query.get("cursor") || "";
  const page = await get(`/jobs?limit=50&cursor=${encodeURIComponent(cursor)}${state ? `&state=${state}` : ""}`);
  const select = el("select", { "data-key": "state" }, STATES.map((one) =>
    el("option", { value: one, selected: one === state }, one ? one.toLowerCase() : "all states")));
  select.addEventListener("change", () => { location.hash = select.value ? `#/jobs?state=${select.value}` : "#/jobs"; });
  const next = page.cursor ? link(`#/jobs?state=${state}&cursor=${encodeURIComponent(page.cursor)}`, "Older") : null;
  return [
    el("h1", {}, "Jobs"),
    el("p", { class: "filters" }, el("label", {}, "Show", select), cursor ? link(state ? `#/jobs?state=${state}` : "#/jobs", "Newest") : null),
    jobTable(page.jobs, "No jobs."),
    el("p", {}, next ?? ""),
  ];
}

async function job(id) {
  const path = `/jobs/${encodeURIComponent(id)}`;
  const [j, history] = await Promise.all([get(path), get(`${path}/history`)]);
  const last = history.attempts.at(-1);
  const log = last ? await get(`${path}/logs`).catch(() => null) : null;
  return [
    el("h1", {}, j.name, " ", badge(j.state)),
    buttons(...jobActs(j)),
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
    log && log.log ? el("pre", { tabindex: "0" }, log.log) : el("p", { class: "muted" }, "Nothing was written."),
  ];
}

async function workers() {
  const { workers: found } = await get("/workers?limit=1000");
  return [
    el("h1", {}, "Workers"),
    table(["Worker", "State", "Jobs", "Capabilities", "Heard of", "Since", ""], found.map((w) => [
      w.id, badge(w.state), tight(`${w.current_jobs} of ${w.capacity}`), w.capabilities.join(", "),
      tight(ago(w.last_heartbeat)), tight(ago(w.started_at)),
      buttons(
        ["AVAILABLE", "BUSY"].includes(w.state)
          ? act("Drain", "POST", `/workers/${w.id}/drain`, { sure: `Let ${w.id} finish and take nothing new?` }) : null,
        w.state === "UNAVAILABLE" ? act("Forget", "DELETE", `/workers/${w.id}`, { role: "admin" }) : null)]),
      "No worker is there: hyperscale scheduler worker starts one."),
  ];
}

async function letters() {
  const { letters: found } = await get("/dead-letters?limit=200");
  return [
    el("h1", {}, "Dead letters"),
    el("p", { class: "muted" }, "Jobs that failed for good. Replay makes a new job of it; drop forgets it."),
    table(["Job", "Why", "When", "Tries", ""], found.map((one) => [
      nameOf(one.job), one.reason, tight(ago(one.at)), tight(String(one.job.retry_count + 1)),
      buttons(
        act("Replay", "POST", `/dead-letters/${one.id}/replay`),
        act("Drop", "DELETE", `/dead-letters/${one.id}`, { sure: `Forget that ${one.job.name} failed?` }))]),
      "None. Nothing has failed for good."),
  ];
}

// ---- drawing

const VIEWS = { "": overview, schedules, jobs, workers, letters };
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
    if (one.dataset.view === (name || "overview")) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  try {
    const o = await get("/overview");
    known.overview = o;
    known.role = o.role;
    known.now = Date.parse(o.now);
    const children = await view(id, query);
    if (mine !== drawn) return;
    health(o);
    replace(children, focus);
    trouble("");
  } catch (error) {
    if (mine !== drawn) return;
    if (error.status === 404) replace([el("h1", {}, "Not there"), el("p", { class: "muted" }, error.message)], focus);
    else trouble(error.status ? error.message : "The scheduler does not answer; trying again.");
  }
  if (mine === drawn && !document.hidden) timer = setTimeout(draw, EVERY_MS);
}

function replace(children, focus) {
  const active = document.activeElement;
  if (active && active.tagName === "SELECT" && !focus) return;
  const key = active && active.dataset ? active.dataset.key : null;
  const scrolled = main.querySelector("pre")?.scrollTop ?? 0;
  main.replaceChildren(...children);
  const pre = main.querySelector("pre");
  if (pre) pre.scrollTop = scrolled;
  if (focus) main.focus({ preventScroll: true });
  else if (key) [...main.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key)?.focus({ preventScroll: true });
}

function health(o) {
  const bad = o.degraded || !o.leader;
  document.getElementById("dot").className = `dot ${bad ? "bad" : "good"}`;
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
addEventListener("hashchange", () => { scrollTo(0, 0); draw(true); });
document.addEventListener("visibilitychange", () => { if (!document.hidden) draw(); });
draw();
