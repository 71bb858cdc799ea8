"""Web vitals of a page, told by the page itself while they grow (web.dev/articles/vitals).

A page tells each new value at once: when it is left there is no time to ask it. What it told last
is its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

BINDING = "__hyperscaleVital"
NAMES = ("ttfb", "fcp", "lcp", "cls", "inp")
# CLS: the largest burst of shifts, each within a second of the last and five of the first.
# INP: the longest interaction, leaving out one of the longest for every fifty.
SCRIPT = """
(() => {
  if (window.top !== window || !window.PerformanceObserver) return;
  const page = Math.random().toString(36).slice(2) + performance.timeOrigin;
  const tell = (name, value) => {
    const say = window.BINDING;
    if (say) say({page, name, value});
  };
  const watch = (type, seen, more) => {
    try {
      new PerformanceObserver(list => list.getEntries().forEach(seen))
        .observe({type, buffered: true, ...more});
    } catch (error) {}
  };
  const begun = entry => Math.max(0, entry.activationStart || 0);
  let waited = 0;
  watch('navigation', entry => {
    waited = begun(entry);
    tell('ttfb', Math.max(0, entry.responseStart - waited));
  });
  watch('paint', entry => {
    if (entry.name === 'first-contentful-paint') {
      tell('fcp', Math.max(0, entry.startTime - waited));
      tell('cls', worst);
    }
  });
  watch('largest-contentful-paint', entry => tell('lcp', Math.max(0, entry.startTime - waited)));
  let worst = 0, burst = 0, first = 0, last = 0;
  watch('layout-shift', entry => {
    if (entry.hadRecentInput) return;
    if (!burst || entry.startTime - last > 1000 || entry.startTime - first > 5000) {
      burst = 0;
      first = entry.startTime;
    }
    last = entry.startTime;
    burst += entry.value;
    if (burst > worst) tell('cls', worst = burst);
  });
  const longest = new Map();
  const acted = entry => {
    if (!entry.interactionId) return;
    const known = longest.get(entry.interactionId) || 0;
    if (entry.duration <= known) return;
    longest.set(entry.interactionId, entry.duration);
    const sorted = [...longest.values()].sort((a, b) => b - a);
    tell('inp', sorted[Math.min(sorted.length - 1, Math.floor(sorted.length / 50))]);
  };
  watch('event', acted, {durationThreshold: 16});
  watch('first-input', acted);
})();
""".replace("BINDING", BINDING)

Measure = Callable[[str, float], None]


class Vitals:
    """Of the pages of one user: `of_page` are those so far; `end` measures them."""

    def __init__(self) -> None:
        self._page = ""
        self._measure: Measure = lambda name, value: None
        self.of_page: dict[str, float] = {}

    def told(self, said: Mapping[str, Any], measure: Measure) -> None:
        """By a page. `measure` is of the step in which it was; a page after it ends the last."""
        name, value, page = said.get("name"), said.get("value"), str(said.get("page"))
        if name not in NAMES or not isinstance(value, int | float):
            return
        if page != self._page:
            self.end()
            self._page, self._measure = page, measure
        self.of_page[name] = float(value)

    def end(self) -> None:
        for name, value in self.of_page.items():
            self._measure(f"browser_web_vital_{name}", value)
        self.of_page = {}
