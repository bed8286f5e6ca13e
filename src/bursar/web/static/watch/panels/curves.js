// The learning curves: the mean of all tasks first, then each task; below, the savings against random selection.

import { el } from "../../annotate/dom.js";
import { chartFigure } from "../../charts/charts.js";
import { empty, note, panels, tables, words } from "../parts.js";
import { rangeRows } from "../rows.js";

export function draw(part) {
  if (part.empty) return empty(part);
  const [first, ...rest] = part.panels;
  const low = Math.min(-0.5, ...part.saved.map((row) => row.low));
  const saved = part.saved.length
    ? el("div", { class: "saved" }, el("h3", {}, "Cost of the same score, against random"), rangeRows(part.saved, { low, high: 1, zero: 0, ends: ["more", "same", "less"] }))
    : null;
  const charts = el("div", { class: "charts" }, chartFigure(first), rest.length ? panels(rest) : null);
  return [words(part.words), charts, note(part.note), saved, tables(part.tables)];
}
