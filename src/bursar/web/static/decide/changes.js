// Lists of changes: those being edited, each with a button to undo it, and the history.

import { button, el } from "../annotate/dom.js";
import { nameOf, valueOf } from "./words.js";

/** A setting with its old and new value. */
function change({ key, before, after }, money, wrong = false) {
  const [old, next] = [before, after].map((value) => valueOf(key, value, money));
  return [
    el("span", { class: "name" }, el("bdi", {}, nameOf(key))),
    " ",
    el("span", { class: "turn" }, el("del", {}, el("bdi", {}, old)), el("span", { class: "unseen" }, " becomes "), " ", wrong ? el("em", {}, "invalid") : el("ins", {}, el("bdi", {}, next))),
  ];
}

/** The changes being edited. */
export function changing(list, mistakes, money, takeBack) {
  return list.map((one) => {
    const wrong = one.fields.some((name) => mistakes.has(name));
    const back = button("button quiet icon back", () => takeBack(one.fields), { "aria-label": `Undo: ${nameOf(one.key)}`, title: "Undo" }, "↺");
    return el("li", {}, el("div", {}, ...change(one, money, wrong)), back);
  });
}

/** The history of changes, newest first. */
export function changed(history, me, money) {
  return history.toReversed().map(({ by, at, differences, since_round: since }) => {
    const visible = differences.filter(({ key, before, after }) => valueOf(key, before, money) !== valueOf(key, after, money));
    return el(
      "tr",
      {},
      el("td", { "data-label": "When" }, el("time", { datetime: at }, when(at))),
      el("td", { "data-label": "Who" }, el("bdi", {}, by === me ? "you" : by)),
      el("td", { "data-label": "What", class: "what" }, el("ul", { class: "made" }, ...visible.map((one) => el("li", {}, ...change(one, money))))),
      el("td", { "data-label": "Applies from" }, since === null ? el("span", { class: "chip" }, "the next round") : `round ${since}`),
    );
  });
}

/** The names of changed settings, for a sentence. */
export function namesOf(history) {
  const names = [...new Set(history.flatMap(({ differences }) => differences.map(({ key }) => nameOf(key))))];
  return names.length > 3 ? `${names.slice(0, 3).join(", ")} and more` : names.join(", ");
}

function when(at) {
  const time = new Date(at);
  const today = time.toDateString() === new Date().toDateString();
  return today ? time.toLocaleTimeString("en", { timeStyle: "short" }) : time.toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}
