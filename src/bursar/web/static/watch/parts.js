// The sections of the dashboard. Each makes nodes of its part of the server's view; `empty` says what to do instead.

import { el } from "../annotate/dom.js";
import { chartFigure } from "../charts/charts.js";
import { rangeRows, shareRows } from "./rows.js";

const words = (list, look = "intro") => (list?.length ? el("p", { class: look }, list.join(" ")) : null);
export const note = (text) => (text ? el("p", { class: "aside note" }, text) : null);

/** Numbers behind the charts, for whoever wants or needs them as a table. */
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

/** Why there is nothing to see, and what to do about it. */
export function empty({ empty: text, command }) {
  return [el("div", { class: "empty" }, el("p", {}, text), command ? el("pre", { class: "command" }, el("code", {}, command)) : null)];
}

const panels = (list) => el("div", { class: `panels of-${Math.min(list.length, 3)}` }, list.map(chartFigure));

// -- what was learned and paid ---------------------------------------------------------------------------------------

export function curves(part) {
  if (part.empty) return empty(part);
  const [first, ...rest] = part.panels;
  const saved = part.saved.length
    ? el(
        "div",
        { class: "saved" },
        el("h3", {}, "Money for the same score, beside random"),
        rangeRows(part.saved, { low: Math.min(-0.5, ...part.saved.map((row) => row.low)), high: 1, zero: 0, ends: ["more money", "as much", "less money"] }),
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
    el("div", { class: "charts beside" }, chartFigure(part.chart), el("div", {}, el("h3", {}, "Altogether"), shareRows(part.totals))),
    part.audited ? note("Hatched: audit slices, drawn at random to score the model without bias.") : null,
    tables(part.tables),
  ];
}

export function trust(part) {
  if (part.empty) return empty(part);
  return [
    words(part.words),
    el("div", { class: "charts" }, panels(part.panels)),
    note("A point on the dashed line is right as often as it says. Bars beneath: how many items."),
    tables(part.tables),
  ];
}

export function stopping(part) {
  if (part.empty) return empty(part);
  const verdicts = { stop: ["Stop", "stop"], "go on": ["Go on", "good"], unknown: ["Too early to tell", ""] };
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

// -- small things ----------------------------------------------------------------------------------------------------

export const tile = ({ title, value, note: below, tone = "", share = null }) => {
  const meter = share === null ? null : el("dd", { class: "meter", "aria-hidden": "true" }, el("i"));
  if (meter) meter.firstChild.style.width = `${100 * share}%`;
  return el("div", { class: "tile" }, el("dt", {}, title), el("dd", { class: `value ${tone}`.trim() }, value), meter, el("dd", { class: "note" }, below));
};

/** Whole units as money. */
export function money(units, { unit, currency }) {
  const digits = (unit.split(".")[1] ?? "").length;
  const shown = (units * Number(unit)).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return currency ? `${currency}${shown}` : `${shown} units`;
}

/** A refusal as a sentence, with what to do. */
export const sentence = ({ error, fix }) => [error, fix].filter(Boolean).map((text) => `${text[0].toUpperCase()}${text.slice(1).replace(/[.]$/u, "")}.`).join(" ");
