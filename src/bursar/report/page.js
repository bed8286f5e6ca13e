"use strict";
(() => {
  const report = JSON.parse(document.getElementById("report-data").textContent);
  const root = document.documentElement;
  const options = { displayModeBar: false };

  // Colours and fonts in a figure are names of style variables, so that charts follow the page's theme.
  const resolved = (value, style) => {
    if (typeof value === "string") return (value.startsWith("--") && style.getPropertyValue(value).trim()) || value;
    if (Array.isArray(value)) return value.map((entry) => resolved(entry, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, resolved(entry, style)]));
  };

  const draw = (place, figure) => {
    if (!figure) return;
    const { data, layout } = resolved(figure, getComputedStyle(root));
    layout.width = place.clientWidth;
    const room = layout.width / (layout.xaxis.type === "category" ? 40 : 90);
    layout.xaxis.nticks = Math.min(layout.xaxis.nticks ?? 7, Math.max(3, Math.floor(room)));
    Plotly.react(place, data, layout, options);
    if (figure.words) place.setAttribute("aria-label", figure.words);
  };

  const choosers = [...document.querySelectorAll("[data-round-chooser]")];
  const round = () => choosers[0].value;
  const drawHistograms = () => {
    for (const place of document.querySelectorAll("[data-histogram]")) {
      draw(place, report.confidence[round()][place.dataset.histogram]);
    }
  };
  const drawAll = () => {
    for (const place of document.querySelectorAll("[data-figure]")) draw(place, report.figures[place.dataset.figure]);
    drawHistograms();
  };

  const show = (chosen) => {
    for (const chooser of choosers) chooser.value = chosen;
    for (const part of document.querySelectorAll("[data-round]")) part.hidden = part.dataset.round !== chosen;
    drawHistograms();
  };
  for (const chooser of choosers) chooser.addEventListener("change", () => show(chooser.value));

  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return; // a phone hides its address bar
    width = innerWidth;
    requestAnimationFrame(drawAll);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let closed = [];
  const printing = (on) => () => {
    if (on) closed = [...document.querySelectorAll("details:not([open])")];
    for (const part of closed) part.open = on;
    root.classList.toggle("printing", on);
    drawAll();
  };
  addEventListener("beforeprint", printing(true));
  addEventListener("afterprint", printing(false));

  drawAll();
})();
