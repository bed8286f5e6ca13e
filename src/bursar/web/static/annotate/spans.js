// Spans `[start, end, label]`, counted in words: pure functions, and the list of spans in a panel.

import { button, el, hueOf, kbd, quoted } from "./dom.js";
import { shortened } from "./text.js";

const MOST_ROWS = 100;

export const overlap = ([a, b], [c, d]) => a < d && c < b;
export const sameStretch = ([a, b], [c, d]) => a === c && b === d;
const inOrder = (spans) => spans.slice().sort((one, other) => one[0] - other[0] || one[1] - other[1]);

/** With one more span. Replaces one on the same words, and overlapping ones unless spans may nest. */
export function withSpan(spans, span, nested) {
  const others = spans.filter((other) => !sameStretch(other, span) && (nested || !overlap(other, span)));
  return inOrder([...others, span]);
}

/** With other spans added: those on free words, or all if spans may nest. */
export function withSpans(spans, others, nested) {
  const all = spans.slice();
  for (const span of others) {
    if (!all.some((own) => (nested ? sameStretch(own, span) : overlap(own, span)))) all.push(span);
  }
  return inOrder(all);
}

/** The index of the shortest span that contains a word, or -1. */
export function spanAt(spans, word) {
  let best = -1;
  spans.forEach(([start, end], at) => {
    const within = start <= word && word < end;
    if (within && (best < 0 || end - start < spans[best][1] - spans[best][0])) best = at;
  });
  return best;
}

/** The index of the next span after a word, wrapping around; -1 if there is none. */
export function spanAfter(spans, word, picked) {
  if (!spans.length) return -1;
  if (picked >= 0) return (picked + 1) % spans.length;
  const next = spans.findIndex(([start]) => start >= word);
  return next < 0 ? 0 : next;
}

/** Show a list of entries, each with a delete button. Unchanged rows are kept: pressing a button in the list of another
 *  task activates that task, and must not remove the button. */
export function showRows(list, entries, { drop, pick = () => {} }) {
  const content = JSON.stringify(entries.map(({ hue, name }) => [hue, name]));
  if (list.dataset.content !== content) {
    list.dataset.content = content;
    list.replaceChildren(...rowsOf(entries, { drop, pick }));
  }
  [...list.children].forEach((row, at) => row.classList.toggle("picked", Boolean(entries[at]?.picked)));
  list.hidden = entries.length === 0;
}

function rowsOf(entries, { drop, pick }) {
  const rows = entries.slice(0, MOST_ROWS).map(({ parts, hue, name }, at) =>
    el(
      "li",
      { class: `entry ${hueOf(hue)}` },
      button("pick", () => pick(at), {}, parts),
      button("drop", () => drop(at), { "aria-label": `Delete ${name}` }, "×"),
    ),
  );
  if (entries.length > MOST_ROWS) rows.push(el("li", { class: "more" }, `and ${entries.length - MOST_ROWS} more`));
  return rows;
}

/** The button that confirms that there is nothing to mark; shown while nothing is marked. */
export function noneButton(name, act) {
  const root = button("none", act, { "aria-pressed": "false" }, kbd("n"), el("span", {}, name));
  const draw = (some, none, suggestion) => {
    const ghost = suggestion?.label.length === 0 && !none;
    root.hidden = some;
    root.setAttribute("aria-pressed", String(none));
    root.classList.toggle("on", none);
    root.classList.toggle("ghost", ghost);
  };
  return { root, draw };
}

export const spanText = (passage, [start, end]) => quoted(shortened(passage.slice(start, end)), { class: "quote" });
