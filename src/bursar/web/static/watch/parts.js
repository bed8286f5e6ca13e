// Building blocks of the panels of the watch page. `empty` explains a missing panel.

import { el } from "../annotate/dom.js";
import { chartFigure } from "../charts/charts.js";
import { moneyText } from "../format.js";

export const words = (list, look = "intro") => (list?.length ? el("p", { class: look }, list.join(" ")) : null);
export const note = (text) => (text ? el("p", { class: "aside note" }, text) : null);

/** The numbers of the charts as tables. */
export function tables(list) {
  return (list ?? []).map(({ title, columns, rows }) =>
    el(
      "details",
      { class: "numbers" },
      el("summary", {}, title),
      el(
        "div",
        { class: "table-frame" },
        el(
          "table",
          {},
          el("caption", { class: "unseen" }, title),
          el("thead", {}, el("tr", {}, columns.map((name) => el("th", { scope: "col" }, name)))),
          el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell))))),
        ),
      ),
    ),
  );
}

/** Why a section is empty, and what to do. */
export function empty({ empty: text, command }) {
  return [el("div", { class: "empty" }, el("p", {}, text), command ? el("pre", { class: "command" }, el("code", {}, command)) : null)];
}

export const panels = (list) => el("div", { class: `panels of-${Math.min(list.length, 3)}` }, list.map(chartFigure));

/** A panel without a script of its own: words, charts, a note and tables. */
export function plain(part) {
  if (part.empty) return empty(part);
  const drawn = [part.chart ? chartFigure(part.chart) : null, part.panels?.length ? panels(part.panels) : null].filter(Boolean);
  return [
    words(part.words),
    drawn.length ? el("div", { class: "charts" }, drawn) : null,
    note(part.note),
    note(part.more?.join(" ")),
    tables(part.tables),
  ];
}

// -- helpers ---------------------------------------------------------------------------------------------------------

export const tile = ({ title, value, note: below, tone = "", share = null }) => {
  const meter = share === null ? null : el("dd", { class: "meter", "aria-hidden": "true" }, el("i"));
  if (meter) meter.firstChild.style.width = `${100 * share}%`;
  return el("div", { class: "tile" }, el("dt", {}, title), el("dd", { class: `value ${tone}`.trim() }, value), meter, el("dd", { class: "note" }, below));
};

/** Money, or units where there is no currency. */
export const money = (units, about) => (about.currency ? moneyText(units, about) : `${moneyText(units, about)} units`);
