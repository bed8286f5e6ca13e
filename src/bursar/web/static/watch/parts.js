// The sections of the watch page, built from the server's data. `empty` explains a missing section.

import { el } from "../annotate/dom.js";
import { chartFigure } from "../charts/charts.js";
import { moneyText } from "../format.js";
import { rangeRows, shareRows } from "./rows.js";

const words = (list, look = "intro") => (list?.length ? el("p", { class: look }, list.join(" ")) : null);
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

const panels = (list) => el("div", { class: `panels of-${Math.min(list.length, 3)}` }, list.map(chartFigure));

// -- sections --------------------------------------------------------------------------------------------------------

export function curves(part) {
  if (part.empty) return empty(part);
  const [first, ...rest] = part.panels;
  const saved = part.saved.length
    ? el(
        "div",
        { class: "saved" },
        el("h3", {}, "Cost of the same score, against random"),
        rangeRows(part.saved, { low: Math.min(-0.5, ...part.saved.map((row) => row.low)), high: 1, zero: 0, ends: ["more", "same", "less"] }),
      )
    : null;
  return [
    words(part.words),
    el("div", { class: "charts" }, chartFigure(first), rest.length ? panels(rest) : null),
    note(part.note),
    saved,
    tables(part.tables),
  ];
}

export function spending(part) {
  if (part.empty) return empty(part);
  return [
    words(part.words),
    el("div", { class: "charts beside" }, chartFigure(part.chart), el("div", {}, el("h3", {}, "Total"), shareRows(part.totals))),
    part.audited ? note("Hatched: audit slices, drawn at random for an unbiased score.") : null,
    tables(part.tables),
  ];
}

export function trust(part) {
  if (part.empty) return empty(part);
  return [
    words(part.words),
    el("div", { class: "charts" }, panels(part.panels)),
    note("On the dashed line, confidence equals accuracy. Bars show the number of items."),
    tables(part.tables),
  ];
}

export function stopping(part) {
  if (part.empty) return empty(part);
  const verdicts = { stop: ["Stop", "stop"], "go on": ["Continue", "good"], unknown: ["Not enough data yet", ""] };
  const [verdict, tone] = verdicts[part.verdict];
  return [
    el("p", { class: `verdict ${tone}` }, verdict),
    words(part.words),
    part.panels.length ? el("div", { class: "charts" }, panels(part.panels)) : null,
    note(part.note),
    tables(part.tables),
  ];
}

export function oracle(part) {
  if (part.empty) return empty(part);
  return [
    words(part.words),
    el("div", { class: "charts" }, chartFigure(part.chart)),
    note(part.note),
    note(part.more.join(" ")),
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
