// Changes as lists: those that are being made, each with a way back, and those that were made, by whom and when.

import { button, el } from "../annotate/dom.js";
import { nameOf, valueOf } from "./words.js";

/** A setting with what it was and what it becomes. */
function change({ key, before, after }, money, wrong = false) {
  const [old, next] = [before, after].map((value) => valueOf(key, value, money));
  return [
    el("span", { class: "name" }, el("bdi", {}, nameOf(key))),
    " ",
    el("span", { class: "turn" }, el("del", {}, el("bdi", {}, old)), el("span", { class: "unseen" }, " becomes "), " ", wrong ? el("em", {}, "not right yet") : el("ins", {}, el("bdi", {}, next))),
  ];
}

/** What the lead is about to change. */
export function changing(list, mistakes, money, takeBack) {
  return list.map((one) => {
    const wrong = one.fields.some((name) => mistakes.has(name));
    const back = button("button quiet icon back", () => takeBack(one.fields), { "aria-label": `Take back: ${nameOf(one.key)}`, title: "Take back" }, "↺");
    return el("li", {}, el("div", {}, ...change(one, money, wrong)), back);
  });
}

/** What was changed, the newest first. */
export function changed(history, me, money) {
  return history.toReversed().map(({ by, at, differences, since_round: since }) => {
    const told = differences.filter(({ key, before, after }) => valueOf(key, before, money) !== valueOf(key, after, money));
    return el(
      "tr",
      {},
      el("td", { "data-label": "When" }, el("time", { datetime: at }, when(at))),
      el("td", { "data-label": "Who" }, el("bdi", {}, by === me ? "you" : by)),
      el("td", { "data-label": "What", class: "what" }, el("ul", { class: "made" }, ...told.map((one) => el("li", {}, ...change(one, money))))),
      el("td", { "data-label": "Counts since" }, since === null ? el("span", { class: "chip" }, "the next round") : `round ${since}`),
    );
  });
}

/** The settings that others changed, in a sentence's middle. */
export function namesOf(history) {
  const names = [...new Set(history.flatMap(({ differences }) => differences.map(({ key }) => nameOf(key))))];
  return names.length > 3 ? `${names.slice(0, 3).join(", ")} and more` : names.join(", ");
}

function when(at) {
  const time = new Date(at);
  const today = time.toDateString() === new Date().toDateString();
  return today ? time.toLocaleTimeString("en", { timeStyle: "short" }) : time.toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}
