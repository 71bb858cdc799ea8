// The runs of the folder: how they went from one to the next, two or more compared, their files.

import { el, get } from "./parts.js";
import { spark } from "./spark.js";

const CHARTED_MAX = 100;
const picked = new Set();

export async function runs() {
  const all = await get("/api/runs");
  for (const run of picked) if (!all.some((one) => one.run === run)) picked.delete(run);
  if (!all.length) return [el("h1", {}, "Runs"), el("p", { class: "empty" }, "There are no results in this folder yet. hyperscale run test.py --json FILE writes some, and so does every run that is started here.")];
  const compare = el("a", { class: "button primary", target: "_blank", rel: "noopener" }, "Compare");
  const update = () => {
    const chosen = all.filter((one) => picked.has(one.run)).reverse();
    compare.textContent = chosen.length > 1 ? `Compare ${chosen.length} runs` : "Choose two runs to compare";
    compare.classList.toggle("off", chosen.length < 2);
    if (chosen.length > 1) compare.href = `/api/compare?${chosen.map((one) => `run=${encodeURIComponent(one.run)}`).join("&")}`;
    else compare.removeAttribute("href");
  };
  const filter = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter the runs", oninput: () => show() });
  const body = el("tbody");
  const trend = el("div", { class: "trend" });
  const show = () => {
    const wanted = filter.value.trim().toLowerCase();
    const found = all.filter((one) => `${one.run} ${one.name} ${one.load}`.toLowerCase().includes(wanted));
    body.replaceChildren(...found.map((one) => row(one, update)));
    trend.replaceChildren(...(found.length > 1 ? trends(found.slice(0, CHARTED_MAX).reverse()) : []));
  };
  show();
  update();
  const heads = [["", ""], ["Run", ""], ["Started", ""], ["Verdict", ""], ["Requests", "number"], ["Rate", "number"], ["Failed", "number"], ["p50", "number wide"], ["p95", "number"], ["p99", "number"], ["", ""]];
  const headings = heads.map(([name, kind]) => el("th", { scope: "col", class: kind || null }, name ? el("button", { type: "button" }, name) : ""));
  const node = el("table", { class: "runs" }, el("thead", {}, el("tr", {}, headings)), body);
  for (const button of node.querySelectorAll("thead button")) charts.sortable(button);
  return [
    el("div", { class: "heading" }, el("h1", {}, "Runs"), filter, compare),
    trend,
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Runs" }, node),
  ];
}

function row(one, update) {
  const query = `?run=${encodeURIComponent(one.run)}`;
  const box = el("input", { type: "checkbox", "aria-label": `Compare ${one.run}`, onchange: () => { picked[box.checked ? "add" : "delete"](one.run); update(); } });
  box.checked = picked.has(one.run);
  const started = one.started_at ? new Date(one.started_at) : null;
  const number = (value, shown, kind = "") => el("td", { class: `number ${kind}`.trim(), "data-value": value }, shown);
  return el("tr", {},
    el("td", {}, box),
    el("th", { scope: "row" }, el("a", { href: `/api/report${query}`, target: "_blank", rel: "noopener" }, one.run), el("small", {}, [one.name, one.load].filter(Boolean).join(" · "))),
    el("td", { "data-value": one.started_at }, started ? el("time", { datetime: one.started_at, title: one.started_at }, started.toLocaleString()) : ""),
    el("td", { class: one.passed ? "good" : "alarm" }, one.passed ? "✓ passed" : `✕ exit ${one.exit_code}`),
    number(one.requests, charts.count(one.requests)),
    number(one.rate, charts.rate(one.rate)),
    number(one.failed / Math.max(1, one.requests), charts.share(one.failed, one.requests), one.failed ? "alarm" : ""),
    number(one.p50_ms, charts.latency(one.p50_ms), "wide"),
    number(one.p95_ms, charts.latency(one.p95_ms)),
    number(one.p99_ms, charts.latency(one.p99_ms)),
    el("td", { class: "files" }, el("a", { href: `/api/report${query}&download` }, "report"), " ", el("a", { href: `/api/results${query}&download` }, "JSON")));
}

// From the oldest to the newest.
function trends(found) {
  const name = (one) => `${one.run}\n${one.started_at}`;
  return [
    spark("Throughput", found, name, [["requests", (one) => one.rate]], charts.rate),
    spark("Latency p50, p95, p99", found, name, [["p50", (one) => one.p50_ms], ["p95", (one) => one.p95_ms], ["p99", (one) => one.p99_ms]], charts.latency),
    spark("Failed", found, name, [["failed", (one) => one.failed / Math.max(1, one.requests)]], (share) => charts.share(share, 1)),
  ];
}
