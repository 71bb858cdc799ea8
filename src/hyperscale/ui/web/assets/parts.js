// What every view is made of: elements, requests, small dialogs. Whatever comes from a test or a
// target enters as text, never as markup.

export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

// Writes only what differs: an untouched node costs no layout.
export function text(node, words) {
  if (node.textContent !== words) node.textContent = words;
}
export function attribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

export function table(caption, heads, rows, kind = "") {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    el("table", { class: kind },
      el("thead", {}, el("tr", {}, heads.map(([name, number]) => el("th", { scope: "col", class: number && "number" }, name)))),
      el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell, place) => {
        const [content, mood] = Array.isArray(cell) ? cell : [cell, ""];
        const tag = place ? "td" : "th";
        return el(tag, { scope: place ? null : "row", class: `${heads[place][1] ? "number " : ""}${mood}`.trim() || null }, content);
      }))))));
}

// ---- requests

export async function call(method, path, body) {
  const given = { method, cache: "no-store", credentials: "same-origin" };
  if (body !== undefined) Object.assign(given, { headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  const answer = await fetch(path, given);
  const said = await answer.json();
  if (answer.status === 401 && path !== "/api/login") {
    await login();
    return call(method, path, body);
  }
  if (!answer.ok) throw new Error([said.message, said.hint].filter(Boolean).join(": "));
  return said;
}
export const get = (path) => call("GET", path);

// The printed address brings the token behind the #, which no server is sent; it goes out of the
// address bar and of the history at once, and is kept in a cookie that no script reads.
const brought = /^#token=([\w-]+)$/.exec(location.hash);
if (brought) history.replaceState(null, "", "#/");
const enter = (token) => call("POST", "/api/login", token);
export const entered = brought ? enter(brought[1]).catch(() => {}) : Promise.resolve();

let asking = null;
export function login() {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("login");
    dialog.addEventListener("close", async function tried() {
      try {
        await enter(document.getElementById("token").value.trim());
      } catch {
        document.getElementById("refused").hidden = false;
        dialog.showModal();
        return;
      }
      dialog.removeEventListener("close", tried);
      asking = null;
      resolve();
    });
    dialog.showModal();
  });
  return asking;
}

// ---- what a person is told and asked

let fading = 0;
export function toast(words, bad = false) {
  const line = document.getElementById("toast");
  line.textContent = words;
  line.classList.toggle("bad", bad);
  line.hidden = false;
  clearTimeout(fading);
  fading = setTimeout(() => { line.hidden = true; }, bad ? 8000 : 4000);
}

// Does it, and says what came of it.
export async function told(promise) {
  try {
    toast((await promise).said);
    return true;
  } catch (error) {
    toast(error.message, true);
    return false;
  }
}

export function asked(id, question) {
  const dialog = document.getElementById(id);
  if (question) document.getElementById("question").textContent = question;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true }));
}
