(() => {
  "use strict";
  const results = JSON.parse(document.querySelector("#hyperscale-results, #hyperscale-series").textContent);

  for (const chart of document.querySelectorAll(".chart")) {
    const svg = chart.querySelector("svg");
    const title = svg.querySelector("title");
    const desc = svg.querySelector("desc");
    // A title element would open the browser's own tooltip over ours.
    svg.setAttribute("aria-label", `${title.textContent}. ${desc.textContent}`);
    svg.removeAttribute("aria-labelledby");
    title.remove();
    charts.legend(chart);
    const workflow = results.workflows[chart.dataset.workflow];
    if (!workflow) continue;
    const series = (workflow.steps[chart.dataset.step] ?? workflow).series;
    const end = Number(chart.dataset.end);
    charts.inspect(chart, () => series, () => end);
    if (chart.dataset.kind !== "heat") continue;
    chart.querySelector(".canvas").append(document.createElement("canvas"));
    const draw = () => charts.heat(chart, series, end, Number(chart.dataset.low), Number(chart.dataset.high));
    new ResizeObserver(draw).observe(chart.querySelector("canvas"));
    for (const media of ["print", "(prefers-color-scheme: dark)"]) matchMedia(media).addEventListener("change", draw);
  }

  for (const button of document.querySelectorAll("thead button")) charts.sortable(button);
})();
