// What was spent, by round, and the totals beside it.

import { el } from "../../annotate/dom.js";
import { chartFigure } from "../../charts/charts.js";
import { empty, note, tables, words } from "../parts.js";
import { shareRows } from "../rows.js";

export function draw(part) {
  if (part.empty) return empty(part);
  const totals = el("div", {}, el("h3", {}, "Total"), shareRows(part.totals));
  return [words(part.words), el("div", { class: "charts beside" }, chartFigure(part.chart), totals), note(part.note), tables(part.tables)];
}
