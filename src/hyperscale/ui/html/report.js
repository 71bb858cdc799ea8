(() => {
  "use strict";
  const results = JSON.parse(document.getElementById("hyperscale-results").textContent);

  const digits = (value) => {
    if (!value) return "0";
    const whole = Math.floor(Math.log10(Math.abs(value)));
    return value.toLocaleString("en", {
      minimumFractionDigits: Math.max(0, 2 - whole),
      maximumFractionDigits: Math.max(0, 2 - whole),
    });
  };
  const latency = (ms) =>
    ms <= 0 ? "–" : ms < 1 ? `${digits(ms * 1000)} µs` : ms < 999.5 ? `${digits(ms)} ms` : `${digits(ms / 1000)} s`;
  const rate = (n) =>
    n >= 999500 ? `${digits(n / 1e6)}M/s` : n >= 999.5 ? `${digits(n / 1000)}k/s` : `${digits(n)}/s`;
  const clock = (s) => {
    const two = (n) => String(Math.floor(n)).padStart(2, "0");
    const tail = Number.isInteger(s) ? "" : `.${Math.floor((s % 1) * 10)}`;
    return `${s >= 3600 ? `${Math.floor(s / 3600)}:${two((s % 3600) / 60)}` : Math.floor(s / 60)}:${two(s % 60)}${tail}`;
  };

  const describe = {
    throughput: (p) => [
      `${rate(p.requests / p.width_s)} requests`,
      p.failed && `${rate(p.failed / p.width_s)} failed`,
      p.dropped && `${rate(p.dropped / p.width_s)} arrivals not started`,
    ],
    latency: (p) => [
      `p50  ${latency(p.p50_ms)}`,
      `p95  ${latency(p.p95_ms)}`,
      `p99  ${latency(p.p99_ms)}`,
      p.max_ms && `max  ${latency(p.max_ms)}`,
      p.response_p99_ms > p.p99_ms && `p99 response  ${latency(p.response_p99_ms)}`,
    ],
    users: (p) => [`${p.vus.toLocaleString("en")} virtual users`],
  };

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const show = (words, x, y) => {
    tip.textContent = words;
    tip.hidden = false;
    const left = x + 16 + tip.offsetWidth > document.documentElement.clientWidth ? x - 16 - tip.offsetWidth : x + 16;
    tip.style.left = `${Math.max(4, left) + window.scrollX}px`;
    tip.style.top = `${y + 12 + window.scrollY}px`;
  };
  const hide = () => { tip.hidden = true; };

  for (const chart of document.querySelectorAll(".chart")) {
    const svg = chart.querySelector("svg");
    const title = svg.querySelector("title");
    const desc = svg.querySelector("desc");
    // A title element would open the browser's own tooltip over ours.
    svg.setAttribute("aria-label", `${title.textContent}. ${desc.textContent}`);
    svg.removeAttribute("aria-labelledby");
    title.remove();

    for (const button of chart.querySelectorAll(".legend button")) {
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", on);
        for (const curve of svg.querySelectorAll(`.plot .${button.dataset.curve}`)) {
          curve.toggleAttribute("hidden", !on);
        }
      });
    }

    const words = describe[chart.dataset.kind];
    if (!words) continue;
    const workflow = results.workflows[chart.dataset.workflow];
    const series = (workflow.steps[chart.dataset.step] ?? workflow).series;
    const end = Number(chart.dataset.end);
    const canvas = chart.querySelector(".canvas");
    const cursor = document.createElement("div");
    cursor.className = "cursor";
    cursor.hidden = true;
    canvas.append(cursor);
    let at = 0;
    const point = (index) => {
      at = Math.max(0, Math.min(series.length - 1, index));
      const p = series[at];
      const box = svg.getBoundingClientRect();
      const outer = canvas.getBoundingClientRect();
      const x = (box.width * Math.min(end, p.at_s + p.width_s / 2)) / end;
      cursor.hidden = false;
      cursor.style.cssText = `left:${box.left - outer.left + x}px;top:${box.top - outer.top}px;height:${box.height}px`;
      show([clock(p.at_s), ...words(p).filter(Boolean)].join("\n"), box.left + x, box.top);
    };
    const leave = () => { cursor.hidden = true; hide(); };
    canvas.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const moment = ((event.clientX - box.left) / box.width) * end;
      let low = 0;
      let high = series.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (series[middle].at_s <= moment) low = middle;
        else high = middle - 1;
      }
      point(low);
    });
    canvas.addEventListener("pointerleave", leave);
    canvas.tabIndex = 0;
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step) { point(at + step); event.preventDefault(); }
    });
    canvas.addEventListener("blur", leave);
  }

  document.addEventListener("pointerover", (event) => {
    const target = event.target.closest("[data-tip]");
    if (target) show(target.dataset.tip, event.clientX, event.clientY);
    else if (!event.target.closest(".canvas")) hide();
  });

  for (const button of document.querySelectorAll("thead button")) {
    button.addEventListener("click", () => {
      const heading = button.closest("th");
      const index = heading.cellIndex;
      const body = heading.closest("table").tBodies[0];
      const numeric = heading.classList.contains("number");
      const before = heading.getAttribute("aria-sort");
      const down = before ? before === "ascending" : numeric;
      for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[index].dataset.value ?? row.cells[index].textContent;
      const rows = [...body.rows].sort((a, b) =>
        numeric ? value(a) - value(b) : value(a).localeCompare(value(b), undefined, { numeric: true }));
      body.append(...(down ? rows.reverse() : rows));
    });
  }
})();
