// Rows of a name, a bar or an interval, and a value.

import { el } from "../annotate/dom.js";

/** Rows of a name, a bar and a value. */
export function shareRows(rows) {
  const list = el("dl", { class: "shares" });
  for (const row of rows) {
    const bar = el("span", { class: `fill look-${row.look}${row.hatched ? " hatched" : ""}` });
    bar.style.width = `${row.share ? Math.max(0.5, 100 * row.share) : 0}%`;
    list.append(el("div", {}, el("dt", {}, el("bdi", {}, row.name)), el("dd", { class: "track", "aria-hidden": "true" }, bar), el("dd", { class: "value" }, row.value), row.note ? el("dd", { class: "aside" }, row.note) : null));
  }
  return list;
}

/** Rows of a name, an interval on a shared axis, and what it says; `zero` is marked. */
export function rangeRows(rows, { low, high, zero = null, ends = null }) {
  const place = (value) => `${(100 * (Math.min(Math.max(value, low), high) - low)) / (high - low || 1)}%`;
  const list = el("dl", { class: "ranges" });
  for (const row of rows) {
    const track = el("dd", { class: "track", "aria-hidden": "true" });
    if (zero !== null) track.append(placed("zero", { left: place(zero) }));
    const across = `${(100 * (Math.min(row.high, high) - Math.max(row.low, low))) / (high - low || 1)}%`;
    if (row.high > row.low) track.append(placed(`span look-${row.look ?? "arm-1"}`, { left: place(row.low), width: across }));
    if (row.middle !== null) track.append(placed(`point look-${row.look ?? "arm-1"}`, { left: place(row.middle) }));
    list.append(el("div", {}, el("dt", {}, el("bdi", {}, row.name)), track, el("dd", { class: "value" }, row.value), row.note ? el("dd", { class: "aside" }, row.note) : null));
  }
  if (ends) list.append(el("div", { class: "ends", "aria-hidden": "true" }, ends.map((name, k) => placed("end", { left: place([low, zero, high][k]) }, name))));
  return list;
}

function placed(look, styles, words = null) {
  const node = el("i", { class: look }, words);
  Object.assign(node.style, styles);
  return node;
}
