// The other columns of the table that an item came from, beside its text.

import { count, el } from "./dom.js";

const SHOWN = 6; // columns; the others are folded
const LONGEST = 60; // characters of a value that is shown at once

const entry = ({ name, value }) =>
  el("div", {}, el("dt", {}, el("bdi", {}, name)), el("dd", { dir: "auto" }, value));
const list = (columns) => el("dl", {}, ...columns.map(entry));

/** The metadata of an item: short values at once, the others on request; null if there are none. */
export function metadataOf(item) {
  const columns = item.metadata ?? [];
  if (!columns.length) return null;
  const short = columns.filter(({ value }) => value.length <= LONGEST).slice(0, SHOWN);
  const folded = columns.filter((column) => !short.includes(column));
  const more = folded.length ? el("details", {}, el("summary", {}, count(folded.length, short.length ? "more column" : "column")), list(folded)) : null;
  return el("aside", { class: "metadata", "aria-label": "Other columns of this item" }, short.length ? list(short) : null, more);
}
