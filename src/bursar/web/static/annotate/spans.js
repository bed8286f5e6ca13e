// Lists of spans `[start, end, label]`, in words: pure functions, and the list that a panel shows of them.

import { button, el, hueOf, kbd, quoted } from "./dom.js";
import { shortened } from "./text.js";

const MOST_ROWS = 100;

export const overlap = ([a, b], [c, d]) => a < d && c < b;
export const sameStretch = ([a, b], [c, d]) => a === c && b === d;
const inOrder = (spans) => spans.slice().sort((one, other) => one[0] - other[0] || one[1] - other[1]);

/** With one more span. One on the very same words is relabelled; others that it overlaps go, unless spans may nest. */
export function withSpan(spans, span, nested) {
  const others = spans.filter((other) => !sameStretch(other, span) && (nested || !overlap(other, span)));
  return inOrder([...others, span]);
}

/** With another's spans added: those on words that are free, or all where spans may nest. */
export function withSpans(spans, others, nested) {
  const all = spans.slice();
  for (const span of others) {
    if (!all.some((own) => (nested ? sameStretch(own, span) : overlap(own, span)))) all.push(span);
  }
  return inOrder(all);
}

/** The place in the list of the shortest span with this word in it; -1 if there is none. */
export function spanAt(spans, word) {
  let best = -1;
  spans.forEach(([start, end], at) => {
    const within = start <= word && word < end;
    if (within && (best < 0 || end - start < spans[best][1] - spans[best][0])) best = at;
  });
  return best;
}

/** The next span that begins after a place, from the front again after the last; -1 if there is none. */
export function spanAfter(spans, word, picked) {
  if (!spans.length) return -1;
  if (picked >= 0) return (picked + 1) % spans.length;
  const next = spans.findIndex(([start]) => start >= word);
  return next < 0 ? 0 : next;
}

/** Show a list of what was marked, each line with a button that takes it back. Lines stay while they say the same:
 *  whoever presses a button in another task's list makes that task active, and must not lose the button by it. */
export function showRows(list, entries, { drop, pick = () => {} }) {
  const said = JSON.stringify(entries.map(({ hue, name }) => [hue, name]));
  if (list.dataset.said !== said) {
    list.dataset.said = said;
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

/** The button that says there is nothing to mark: shown while there is nothing, pressed when that was said. */
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
