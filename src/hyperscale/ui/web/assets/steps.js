// The table of steps: sorts, filters, and stays quick with a thousand of them: rows that cannot be
// seen are not written.

import { el, text } from "./parts.js";

const SHOWN = 50;
// What the server tells of a step, in its order.
const [COUNT, RATE, FAILED, UNSENT, MEAN, P50, P95, P99, MAX, RESPONSE, BYTES, SPENT] = Array.from({ length: 12 }, (_, place) => place);
const of = (place) => (row) => row.numbers[place];
const bytes = (n) => charts.short(n).replace(/[kMG]?$/, (letter) => `\u00a0${letter}B`);
const latency = (name, place, more = {}) => ({ name, value: of(place), shown: (row) => charts.latency(row.numbers[place]), ...more });
const COLUMNS = [
  { name: "Step", words: true, value: (row) => row.name },
  { name: "Requests", value: of(COUNT), shown: (row) => charts.count(row.numbers[COUNT]) },
  { name: "Rate", value: of(RATE), shown: (row) => charts.rate(row.numbers[RATE]) },
  {
    name: "Failed",
    value: ({ numbers: n }) => n[FAILED] / Math.max(1, n[COUNT] + n[UNSENT]),
    shown: ({ numbers: n }) => charts.share(n[FAILED], n[COUNT] + n[UNSENT]),
    alarm: ({ numbers: n }) => n[FAILED] > 0,
  },
  latency("Mean", MEAN, { wide: true }), latency("p50", P50), latency("p95", P95), latency("p99", P99), latency("Max", MAX),
  latency("Response p99", RESPONSE, { wide: true, hint: "From the moment the request was due" }),
  { name: "Received", value: of(BYTES), shown: (row) => bytes(row.numbers[BYTES]), wide: true },
  latency("Step p95", SPENT, { wide: true, hint: "Time inside the step: its requests, its own code, its waits" }),
];

export class Steps {
  constructor() {
    this.rows = [];
    this.shown = [];
    this.sort = null;
    this.all = false;
    this.filter = el("input", { type: "search", placeholder: "Filter (/)", "aria-label": "Filter the steps by name", oninput: () => this.draw(true) });
    this.count = el("span", { class: "unit" });
    this.more = el("button", { type: "button", hidden: true, onclick: () => { this.all = !this.all; this.draw(true); } });
    this.heads = COLUMNS.map((column) => el("th", { scope: "col", class: `${column.words ? "" : "number "}${column.wide ? "wide" : ""}`.trim() || null, title: column.hint },
      el("button", { type: "button", onclick: () => this.sortBy(column) }, column.name)));
    this.body = el("tbody");
    this.node = el("section", { id: "steps" },
      el("div", { class: "heading" }, el("h2", {}, "Steps"), this.count, this.filter),
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Steps" },
        el("table", { class: "steps live" }, el("thead", {}, el("tr", {}, this.heads)), this.body)),
      el("p", { class: "buttons" }, this.more));
    let waiting = false;
    addEventListener("scroll", () => {
      if (waiting || !this.all) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; this.write(); });
    }, { passive: true });
  }

  sortBy(column) {
    const heading = this.heads[COLUMNS.indexOf(column)];
    this.sort = { column, down: charts.turned(heading, !column.words) };
    this.draw(true);
  }

  show(names, numbers) {
    this.rows = [];
    names.forEach(([name, method, group], place) => {
      if (numbers[place]) this.rows.push({ name, label: method ? `${method} ${name}` : name, group, numbers: numbers[place] });
    });
    this.draw(false);
  }

  // Under the pointer rows keep their places: nobody can read what jumps.
  draw(asked) {
    const wanted = this.filter.value.trim().toLowerCase();
    let found = wanted ? this.rows.filter((row) => `${row.label} ${row.group}`.toLowerCase().includes(wanted)) : this.rows;
    if (this.sort) {
      const { column: { value, words }, down } = this.sort;
      const still = !asked && this.body.matches(":hover") && found.length === this.order?.length;
      if (still) {
        const rows = new Map(found.map((row) => [row.name, row]));
        found = this.order.map((name) => rows.get(name)).filter(Boolean);
      }
      else found = [...found].sort(words ? (a, b) => value(a).localeCompare(value(b), undefined, { numeric: true }) : (a, b) => value(a) - value(b));
      if (!still && down) found.reverse();
      if (!still) this.order = found.map((row) => row.name);
    }
    this.shown = this.all ? found : found.slice(0, SHOWN);
    text(this.count, wanted ? `${found.length} of ${this.rows.length}` : this.rows.length > 1 ? String(this.rows.length) : "");
    this.more.hidden = found.length <= SHOWN;
    text(this.more, this.all ? `Show ${SHOWN}` : `Show all ${charts.count(found.length)}`);
    while (this.body.rows.length > this.shown.length) this.body.deleteRow(-1);
    while (this.body.rows.length < this.shown.length) this.body.append(blank());
    this.write();
  }

  write() {
    const rows = this.body.rows;
    if (!rows.length) return;
    const height = rows[0].offsetHeight || 1;
    const top = this.body.getBoundingClientRect().top;
    const first = this.all ? Math.max(0, Math.floor(-top / height) - 10) : 0;
    const last = this.all ? Math.min(rows.length, Math.ceil((innerHeight - top) / height) + 10) : rows.length;
    for (let place = first; place < last; place += 1) fill(rows[place].cells, this.shown[place]);
  }
}

function blank() {
  return el("tr", {}, COLUMNS.map((column) => el(column.words ? "th" : "td", { scope: column.words ? "row" : null, class: `${column.words ? "" : "number "}${column.wide ? "wide" : ""}`.trim() || null }, "\u00a0")));
}

function fill(cells, row) {
  text(cells[0], row.label);
  if (cells[0].title !== row.label) cells[0].title = row.label;
  for (let place = 1; place < COLUMNS.length; place += 1) {
    const { shown, alarm } = COLUMNS[place];
    text(cells[place], shown(row));
    if (alarm) cells[place].classList.toggle("alarm", alarm(row));
  }
}
