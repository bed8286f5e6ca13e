// Labels as reviewers see them.

import { el, hueOf } from "./dom.js";

const hue = (task, label) => hueOf(Math.max(0, (task.labels ?? []).indexOf(label)));
/** A label in its colour. */
export const chip = (task, label) => el("bdi", { class: `chip ${hue(task, label)}` }, String(label));

/** The words of an item; offsets count code points. */
export function wordsOf(item) {
  const letters = Array.from(item.text ?? "");
  return (item.words ?? []).map(([start, end]) => letters.slice(start, end).join(""));
}

/** A text with its spans marked; overlapping spans as a list. */
export function markedText(item, task, spans) {
  if (!spans.length) return [el("span", { class: "aside" }, "nothing marked")];
  const sorted = [...spans].sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  const apart = sorted.every((span, at) => at === 0 || sorted[at - 1][1] <= span[0]);
  const words = wordsOf(item);
  if (!apart) {
    return sorted.map(([start, end, label]) => el("div", {}, el("bdi", {}, words.slice(start, end).join(" ")), " ", chip(task, label)));
  }
  const letters = Array.from(item.text);
  const parts = [];
  let at = 0;
  for (const [start, end, label] of sorted) {
    const [from, to] = [item.words[start][0], item.words[end - 1][1]];
    parts.push(letters.slice(at, from).join(""));
    parts.push(el("mark", { class: hue(task, label) }, letters.slice(from, to).join(""), el("small", {}, label)));
    at = to;
  }
  parts.push(letters.slice(at).join(""));
  return [el("span", { dir: "auto" }, ...parts)];
}
