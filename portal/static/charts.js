// Charts: fetch a figure's JSON, paint it in the theme's colours, draw it; again when the theme changes.
// Needs the vendored Plotly bundle and <style id="plotly.js-style-global" nonce=…> in the page (includes/charts.html).
(() => {
  "use strict";
  const CONFIG = { displayModeBar: false, responsive: true, doubleClick: false, showTips: false };
  const figures = new Map(); // element -> the figure as it came, with var(--token) colours

  // Colours of a figure for the theme in force.
  function paint(node, css = getComputedStyle(document.documentElement)) {
    if (typeof node === "string") return node.replace(/var\((--[\w-]+)\)/g, (_, name) => css.getPropertyValue(name).trim());
    if (Array.isArray(node)) return node.map((item) => paint(item, css));
    if (node && typeof node === "object") return Object.fromEntries(Object.entries(node).map(([k, v]) => [k, paint(v, css)]));
    return node;
  }

  function open(event) {
    const point = event.points && event.points[0];
    const url = point && (Array.isArray(point.customdata) ? point.customdata[0] : point.customdata);
    if (typeof url === "string" && url.startsWith("/") && !url.startsWith("//")) window.location.assign(url);
  }

  // What is inside role="img" cannot be reached anyway; Plotly's own focus stops are taken out of the order.
  async function draw(element) {
    const figure = figures.get(element);
    if (!figure) return;
    const painted = paint(figure);
    await window.Plotly.react(element, painted.data, { ...painted.layout, height: element.clientHeight, autosize: true }, CONFIG);
    if (!element.dataset.drawn) element.on("plotly_click", open);
    element.dataset.drawn = "yes";
    element.classList.toggle("figure--links", figure.data.some((trace) => trace.customdata));
    element.removeAttribute("aria-busy");
  }

  async function load(element) {
    try {
      const answer = await fetch(element.dataset.src, { headers: { Accept: "application/json" }, credentials: "same-origin" });
      if (!answer.ok) throw new Error(String(answer.status));
      figures.set(element, await answer.json());
      await draw(element);
    } catch (error) {
      element.removeAttribute("aria-busy");
      if (!element.dataset.drawn) element.textContent = "The figure did not arrive. Its numbers are below; reload to try again.";
    }
  }

  function start(root) {
    for (const gone of [...figures.keys()].filter((element) => !element.isConnected)) figures.delete(gone);
    for (const element of root.querySelectorAll(".figure[data-src]:not([data-asked])")) {
      if (!element.dataset.src) continue;
      element.dataset.asked = "yes";
      load(element);
    }
  }

  function repaint() {
    for (const element of figures.keys()) draw(element);
  }

  document.addEventListener("DOMContentLoaded", () => start(document));
  document.addEventListener("htmx:load", (event) => start(event.target));
  document.addEventListener("gatehouse:theme", repaint);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
})();
