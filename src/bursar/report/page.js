// A report: draws its charts, and shows the round that is chosen.

import { plot } from "./static/charts.js";

{
  const charts = JSON.parse(document.getElementById("report-data").textContent);
  const root = document.documentElement;
  const choosers = [...document.querySelectorAll("[data-round-chooser]")];

  const put = (place, chart) => {
    if (!chart) return;
    place.removeAttribute("role"); // the chart says itself what it shows
    place.removeAttribute("aria-label");
    place.replaceChildren(plot(chart));
  };
  const putHistograms = (round) => {
    for (const place of document.querySelectorAll("[data-histogram]")) put(place, charts[`confidence-${round}-${place.dataset.histogram}`]);
  };
  const show = (round) => {
    for (const chooser of choosers) chooser.value = round;
    for (const part of document.querySelectorAll("[data-round]")) part.hidden = part.dataset.round !== round;
    putHistograms(round);
  };
  for (const chooser of choosers) chooser.addEventListener("change", () => show(chooser.value));

  let closed = [];
  const printing = (on) => () => {
    if (on) closed = [...document.querySelectorAll("details:not([open])")];
    for (const part of closed) part.open = on;
    root.classList.toggle("printing", on);
    for (const frame of document.querySelectorAll(".plot")) frame.dispatchEvent(new Event("redraw"));
  };
  addEventListener("beforeprint", printing(true));
  addEventListener("afterprint", printing(false));

  for (const place of document.querySelectorAll("[data-chart]")) put(place, charts[place.dataset.chart]);
  if (choosers.length) putHistograms(choosers[0].value);
}
