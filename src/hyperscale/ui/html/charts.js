// What the report and the live page have in common: how numbers are written, what a chart says
// where the pointer or the arrow keys are, its legend, the heat map, tables that sort.
const charts = (() => {
  "use strict";
  // Making a formatter takes longer than all else in writing a number.
  const formatters = [];
  const fixed = (value, places) => {
    formatters[places] ??= new Intl.NumberFormat("en", { minimumFractionDigits: places, maximumFractionDigits: places });
    return formatters[places].format(value);
  };
  const digits = (value) => {
    if (!value) return "0";
    return fixed(value, Math.min(20, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))))));
  };
  const count = (n) => fixed(n, 0);
  const short = (n) => {
    if (n < 999.5) return Number.isInteger(n) ? String(n) : digits(n);
    const [by, letter] = n < 999500 ? [1e3, "k"] : n < 999.5e6 ? [1e6, "M"] : [1e9, "G"];
    return `${digits(n / by)}${letter}`;
  };
  const latency = (ms) =>
    ms <= 0 ? "–" : ms < 1 ? `${digits(ms * 1000)} µs` : ms < 999.5 ? `${digits(ms)} ms` : `${digits(ms / 1000)} s`;
  const rate = (n) => `${short(n)}/s`;
  const share = (part, whole) => {
    const percent = (100 * part) / whole;
    if (!whole) return "–";
    if (!part || part === whole) return part ? "100 %" : "0 %";
    return percent < 0.01 ? "<0.01 %" : percent > 99.99 ? ">99.99 %" : `${percent.toPrecision(percent < 99 ? 2 : 4)} %`;
  };
  const clock = (s) => {
    const two = (n) => String(Math.floor(n)).padStart(2, "0");
    const tail = Number.isInteger(s) ? "" : `.${Math.floor((s % 1) * 10)}`;
    return `${s >= 3600 ? `${Math.floor(s / 3600)}:${two((s % 3600) / 60)}` : Math.floor(s / 60)}:${two(s % 60)}${tail}`;
  };

  // ---- the tip

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
  document.addEventListener("pointerover", (event) => {
    const target = event.target.closest("[data-tip]");
    if (target) show(target.dataset.tip, event.clientX, event.clientY);
    else if (!event.target.closest(".canvas")) hide();
  });

  const percentiles = (p) => [
    `p50  ${latency(p.p50_ms)}`,
    `p95  ${latency(p.p95_ms)}`,
    `p99  ${latency(p.p99_ms)}`,
    p.max_ms && `max  ${latency(p.max_ms)}`,
    p.response_p99_ms > p.p99_ms && `p99 response  ${latency(p.response_p99_ms)}`,
  ];
  const describe = {
    throughput: (p) => [
      `${rate(p.requests / p.width_s)} requests`,
      p.failed && `${rate(p.failed / p.width_s)} failed`,
      p.dropped && `${rate(p.dropped / p.width_s)} arrivals not started`,
    ],
    latency: percentiles,
    heat: (p, share, low, high) => {
      const number = Math.floor(low + share * (high - low));
      const found = p.ranges?.[number - p.ranges[0] + 1] ?? 0;
      return [`${latency(lower(number))} to ${latency(lower(number + 1))}`, `${count(found)} of ${count(p.requests)} requests`];
    },
    users: (p) => [`${count(p.vus)} virtual users`],
  };

  // Point by point with the pointer or the arrow keys. `series` and `end` are asked for when they
  // are needed: those of the page grow.
  function inspect(chart, series, end) {
    const words = describe[chart.dataset.kind];
    if (!words) return;
    const canvas = chart.querySelector(".canvas");
    const cursor = document.createElement("div");
    cursor.className = "cursor";
    cursor.hidden = true;
    canvas.append(cursor);
    let at = 0;
    const point = (index, height = 0.5) => {
      const points = series();
      if (!points.length) return;
      at = Math.max(0, Math.min(points.length - 1, index));
      const p = points[at];
      const box = canvas.querySelector("svg").getBoundingClientRect();
      const outer = canvas.getBoundingClientRect();
      const x = (box.width * Math.min(end(), p.at_s + p.width_s / 2)) / end();
      cursor.hidden = false;
      cursor.style.cssText = `left:${box.left - outer.left + x}px;top:${box.top - outer.top}px;height:${box.height}px`;
      const { low, high } = chart.dataset;
      show([clock(p.at_s), ...words(p, height, Number(low), Number(high)).filter(Boolean)].join("\n"), box.left + x, box.top);
    };
    const leave = () => { cursor.hidden = true; hide(); };
    canvas.addEventListener("pointermove", (event) => {
      const box = canvas.querySelector("svg").getBoundingClientRect();
      const moment = ((event.clientX - box.left) / box.width) * end();
      const points = series();
      let low = 0;
      let high = points.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (points[middle].at_s <= moment) low = middle;
        else high = middle - 1;
      }
      point(low, Math.max(0, Math.min(0.9999, 1 - (event.clientY - box.top) / box.height)));
    });
    canvas.addEventListener("pointerleave", leave);
    canvas.tabIndex = 0;
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step) { point(at + step); event.preventDefault(); }
    });
    canvas.addEventListener("blur", leave);
  }

  function legend(chart) {
    for (const button of chart.querySelectorAll(".legend button")) {
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", on);
        for (const curve of chart.querySelectorAll(`.plot .${button.dataset.curve}`)) {
          curve.toggleAttribute("hidden", !on);
        }
      });
    }
  }

  // ---- the heat map: how many requests of each moment took how long

  // Four ranges to each doubling, from 2^-20 s on, as docs/results.md says.
  const lower = (number) => 1000 * 2 ** (-20 + Math.floor(number / 4)) * (1 + (number % 4) / 4);
  const COLUMN_PX = 3;

  // Ranges from `low` to before `high`, over `end` seconds, on the canvas of the chart.
  function heat(chart, series, end, low, high) {
    const canvas = chart.querySelector("canvas");
    const box = canvas.getBoundingClientRect();
    if (!box.width || !series.length || high <= low) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    const columns = columnsOf(series, end, Math.max(1, Math.floor(box.width / COLUMN_PX)));
    let most = 0;
    for (const column of columns) for (const n of column.counts.values()) most = Math.max(most, n / column.seconds);
    const pen = canvas.getContext("2d");
    pen.fillStyle = getComputedStyle(canvas).color;
    const row = canvas.height / (high - low);
    for (const column of columns) {
      const left = Math.round((column.from / end) * canvas.width);
      const width = Math.max(1, Math.round((column.to / end) * canvas.width) - left);
      for (const [number, n] of column.counts) {
        // The root lets a handful of slow requests be seen beside thousands of quick ones.
        pen.globalAlpha = 0.1 + 0.9 * Math.sqrt(n / column.seconds / most);
        const top = Math.round((high - number - 1) * row);
        pen.fillRect(left, top, width, Math.round((high - number) * row) - top);
      }
    }
  }

  function columnsOf(series, end, most) {
    const found = [];
    const narrowest = end / most;
    for (const p of series) {
      let column = found[found.length - 1];
      if (!column || p.at_s + p.width_s - column.from > narrowest) {
        column = { from: p.at_s, to: p.at_s, seconds: 0, counts: new Map() };
        found.push(column);
      }
      column.to = p.at_s + p.width_s;
      column.seconds += p.width_s;
      const ranges = p.ranges ?? [];
      for (let place = 1; place < ranges.length; place += 1) {
        if (!ranges[place]) continue;
        const number = ranges[0] + place - 1;
        column.counts.set(number, (column.counts.get(number) ?? 0) + ranges[place]);
      }
    }
    return found;
  }

  // ---- tables that sort

  function sortable(button) {
    button.addEventListener("click", () => {
      const heading = button.closest("th");
      const index = heading.cellIndex;
      const body = heading.closest("table").tBodies[0];
      const numeric = heading.classList.contains("number");
      const down = turned(heading, numeric);
      const value = (row) => row.cells[index].dataset.value ?? row.cells[index].textContent;
      const rows = [...body.rows].sort((a, b) =>
        numeric ? value(a) - value(b) : value(a).localeCompare(value(b), undefined, { numeric: true }));
      body.append(...(down ? rows.reverse() : rows));
    });
  }

  // Numbers begin with the largest, and each further click turns the order around.
  function turned(heading, numeric) {
    const before = heading.getAttribute("aria-sort");
    const down = before ? before === "ascending" : numeric;
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    return down;
  }

  return { clock, count, heat, inspect, latency, legend, lower, rate, share, short, sortable, turned };
})();
