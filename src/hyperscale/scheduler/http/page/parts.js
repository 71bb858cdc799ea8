// What every view of the scheduler's page is made of: the API, elements, times, acts. Everything
// from the API enters as text, never as markup.

export const known = { rights: [], now: Date.now() };
const acted = [];
export const afterAct = (redraw) => acted.push(redraw);

// ---- the API

// The address that `hyperscale scheduler` prints brings the token behind the #, which no server is
// sent; it is taken out of the address bar and of the history at once.
const brought = /^#token=([\w-]+)$/.exec(location.hash);
if (brought) {
  sessionStorage.setItem("token", brought[1]);
  history.replaceState(null, "", "#/");
}

export async function call(method, path, body) {
  const token = sessionStorage.getItem("token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, cache: "no-store", body: body && JSON.stringify(body) });
  if (answer.status === 401) {
    await login(token);
    return call(method, path, body);
  }
  const said = answer.status === 204 ? {} : await answer.json();
  if (!answer.ok) throw Object.assign(new Error(said.detail || answer.statusText), { status: answer.status });
  return said;
}
export const get = (path) => call("GET", `/api/v1${path}`);

let asking = null;
function login(refused) {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("login");
    document.getElementById("refused").hidden = !refused;
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

export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "onclick") made.addEventListener("click", value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}
export const link = (href, text) => el("a", { href, "data-key": href + text }, text);
export const muted = (text) => el("span", { class: "muted" }, text);

const COLOURS = {
  COMPLETED: "good", AVAILABLE: "good", active: "good", FAILED: "bad", UNAVAILABLE: "bad", LOST: "bad",
  EXECUTING: "busy", CLAIMED: "busy", BUSY: "busy", DRAINING: "warn", paused: "warn", RELEASED: "warn", worse: "bad",
};
export const badge = (state) => el("span", { class: `state ${COLOURS[state] || ""}` }, state.toLowerCase());

export function table(heads, rows, empty) {
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
export const tight = (content) => ({ content, kind: "tight number" });

export function facts(rows) {
  return el("dl", {}, rows.filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

// ---- times

export function span(seconds) {
  const size = Math.abs(seconds);
  if (size > 0 && size < 1) return `${Math.max(1, Math.round(size * 1000))} ms`;
  if (size < 90) return `${size < 10 ? Math.round(size * 10) / 10 : Math.round(size)} s`;
  if (size < 5400) return `${Math.round(size / 60)} min`;
  if (size < 129600) return `${Math.round(size / 3600)} h`;
  return `${Math.round(size / 86400)} d`;
}
export function ago(text) {
  if (!text) return "";
  const seconds = (Date.parse(text) - known.now) / 1000;
  const words = seconds >= 0 ? `in ${span(Math.round(seconds))}` : `${span(Math.round(seconds))} ago`;
  return el("time", { datetime: text, title: new Date(text).toLocaleString() }, words);
}
export const full = (text) => (text ? el("span", {}, new Date(text).toLocaleString(), " ", muted("("), ago(text), muted(")")) : "");
export function took(from, to) {
  return from && to ? span((Date.parse(to) - Date.parse(from)) / 1000) : "";
}

// Keyset paging: the page behind the last one shown, and back to the first.
export function pages(here, next, now) {
  const to = (cursor) => `${here}${here.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}`;
  return el("p", { class: "filters" }, now ? link(here, "First") : null, next ? link(to(next), "More") : null);
}

// ---- acts

export const redraw = () => { for (const one of acted) one(); };

export function act(label, method, path, { right = "operate", sure = "", quiet = true, then = null } = {}) {
  if (!known.rights.includes(right)) return null;
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
    redraw();
  });
  return button;
}
export const buttons = (...made) => el("p", { class: "buttons" }, made);

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
export function toast(text) {
  const place = document.getElementById("toast");
  place.textContent = text;
  place.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => { place.hidden = true; }, 4000);
}
