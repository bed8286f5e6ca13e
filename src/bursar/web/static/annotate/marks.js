// Draws spans on a text: a tint behind the words, and a rule with the label below, on several levels if they overlap.

import { el, hueOf, quoted, svg } from "./dom.js";
import { shortened } from "./text.js";

export const LEVEL = 21; // pixels per level of labels below a line
const ARC = 30; // pixels per level of arcs above a line
const MOST = 6; // levels; further marks share the last one
const pen = document.createElement("canvas").getContext("2d");

/** Draws `marks` ({ start, end, label, hue, ghost, picked, name }) on a board; returns their boxes. */
export function drawMarks(board, marks, { arcs = 0 } = {}) {
  const font = getComputedStyle(board.over).fontFamily;
  const lay = () => marks.map((mark) => boxesOf(board, mark.start, mark.end));
  let boxes = lay();
  const levels = levelsOf(boxes, marks.map((mark) => chipWidth(mark, font)), board.passage.direction);
  const deepest = Math.max(0, ...levels);
  if (spread(board, Math.min(deepest, MOST - 1) + 1, arcs)) boxes = lay();
  const tints = document.createDocumentFragment();
  const chips = document.createDocumentFragment();
  const { width } = board.box.getBoundingClientRect();
  marks.forEach((mark, index) => {
    const level = Math.min(levels[index], MOST - 1);
    const look = `${mark.ghost ? "ghost" : hueOf(mark.hue)}${mark.picked ? " picked" : ""}`;
    boxes[index].forEach((box, part) => {
      tints.append(placed(el("i", { class: `tint ${look}` }), box.left - 2, box.top, box.width + 4, box.height));
      const rule = el("i", { class: `rule ${look}` });
      tints.append(placed(rule, box.left - 2, box.bottom + 2 + level * LEVEL, box.width + 4));
      if (part === 0) chips.append(chip(board, mark, index, box, level, look, width));
    });
  });
  board.under.replaceChildren(tints);
  board.over.replaceChildren(chips);
  return boxes;
}

/** Draw the selection and the cursor, which change more often than spans. */
export function drawLight(board, active) {
  if (!board.passage.length) return;
  const [start, end] = board.stretch;
  const around = (look, { left, top, width, height }) =>
    placed(el("i", { class: look }), left - 3, top - 1, width + 6, height + 2);
  const pieces = board.meant ? boxesOf(board, start, end).map((box) => around("chosen", box)) : [];
  const [here] = boxesOf(board, board.at, board.at + 1);
  if (here && active) pieces.push(around("cursor", here));
  board.light.replaceChildren(...pieces);
}

/** The boxes of a range of words: one per line and per run of one direction. */
export function boxesOf(board, start, end) {
  const raw = board.rectsOf(start, end);
  if (!raw.length) return [];
  const origin = board.box.getBoundingClientRect();
  const height = Math.min(...raw.map((box) => box.height));
  const merged = [];
  for (const box of raw) {
    const middle = (box.top + box.bottom) / 2 - origin.top;
    const [left, right] = [box.left - origin.left, box.right - origin.left];
    const gap = height / 2; // about the width of a space
    const meets = (other) => left < other.right + gap && right > other.left - gap;
    const near = merged.find((other) => Math.abs(other.middle - middle) < height / 2 && meets(other));
    if (near) [near.left, near.right] = [Math.min(near.left, left), Math.max(near.right, right)];
    else merged.push({ left, right, middle });
  }
  return merged.map(({ left, right, middle }) => ({
    left,
    right,
    width: right - left,
    height,
    top: middle - height / 2,
    bottom: middle + height / 2,
  }));
}

/** The level of every mark: short ones closest to the text, without overlaps on a level. */
export function levelsOf(boxes, widths, direction = "ltr") {
  const taken = []; // by level: { line, left, right }
  const levels = boxes.map(() => 0);
  const extent = (mark) => mark.reduce((sum, box) => sum + box.width, 0);
  const order = boxes.map((_, at) => at).sort((a, b) => extent(boxes[a]) - extent(boxes[b]) || a - b);
  for (const at of order) {
    const wanted = boxes[at].map((box, part) => {
      const room = part === 0 ? Math.max(box.width, widths[at]) : box.width;
      const left = direction === "rtl" ? box.right - room : box.left;
      return { line: Math.round(box.bottom), left: left - 2, right: left + room + 4 };
    });
    const clashes = (level) =>
      (taken[level] ?? []).some((other) =>
        wanted.some((one) => Math.abs(one.line - other.line) < 8 && one.left < other.right && other.left < one.right),
      );
    let level = 0;
    while (clashes(level)) level += 1;
    (taken[level] ??= []).push(...wanted);
    levels[at] = level;
  }
  return levels;
}

/** An arc between two boxes, with an arrow at its end and a label in the middle. */
export function arcBetween(from, to, level, { label, look, index }) {
  const [x1, x2] = [centre(from), centre(to)];
  const top = Math.min(from.top, to.top) - 10 - level * ARC;
  const bend = Math.max(-14, Math.min(14, (x2 - x1) / 4)) || 14;
  const up = `M${x1},${from.top - 1} C${x1},${top} ${x1},${top} ${x1 + bend},${top}`;
  const path = `${up} L${x2 - bend},${top} C${x2},${top} ${x2},${top} ${x2},${to.top - 5}`;
  const middle = (x1 + x2) / 2;
  const width = plateWidth(label);
  return svg(
    "g",
    { class: `arc ${look}`, "data-link": index },
    svg("path", { class: "reach", d: path }),
    svg("path", { class: "line", d: path }),
    svg("path", { class: "tip", d: `M${x2 - 4},${to.top - 8} L${x2 + 4},${to.top - 8} L${x2},${to.top - 1} Z` }),
    svg("rect", { class: "plate", x: middle - width / 2, y: top - 9, width, height: 18, rx: 9 }),
    svg("text", { x: middle, y: top + 4, "text-anchor": "middle" }, shortened(label, 34)),
  );
}

/** The level of every arc, so that none overlap. Arcs are `[from, to, label]`, where from and to are boxes. */
export function arcLevels(arcs) {
  const extents = arcs.map(([from, to, label]) => {
    const [x1, x2] = [centre(from), centre(to)];
    const half = plateWidth(label) / 2 + 4;
    const middle = (x1 + x2) / 2;
    const [left, right] = [Math.min(x1, x2, middle - half), Math.max(x1, x2, middle + half)];
    return { left, right, line: Math.min(from.top, to.top) };
  });
  const levels = arcs.map(() => 0);
  const width = ({ left, right }) => right - left;
  const order = arcs.map((_, at) => at).sort((a, b) => width(extents[a]) - width(extents[b]) || a - b);
  const laid = [];
  for (const at of order) {
    const { left, right, line } = extents[at];
    let level = 0;
    for (const other of laid) {
      const meets = Math.abs(other.line - line) < 8 && other.left < right && left < other.right;
      if (meets) level = Math.max(level, other.level + 1);
    }
    levels[at] = level;
    laid.push({ left, right, line, level });
  }
  return levels;
}

const centre = ({ left, right }) => (left + right) / 2;

function plateWidth(label) {
  pen.font = "600 12px sans-serif";
  return Math.min(pen.measureText(label).width + 12, 220);
}

function chip(board, mark, index, box, level, look, width) {
  const about = { tabindex: -1, "data-mark": index, "aria-label": mark.name, title: mark.name };
  const node = el("button", { type: "button", class: `flag ${look}`, ...about }, quoted(mark.label));
  const room = chipWidth(mark, getComputedStyle(board.over).fontFamily);
  const left = board.passage.direction === "rtl" ? box.right - room : box.left - 2;
  return placed(node, Math.max(0, Math.min(left, width - room)), box.bottom + 4 + level * LEVEL);
}

function chipWidth({ label }, font) {
  pen.font = `600 11.5px ${font}`;
  return Math.min(pen.measureText(label).width + 14, 200);
}

/** Adjust the line spacing; returns whether it changed. */
function spread(board, levels, arcs) {
  const now = `${levels} ${arcs}`;
  if (board.room === now) return false;
  board.room = now;
  board.box.style.setProperty("--under", `${levels * LEVEL}px`);
  board.box.style.setProperty("--above", `${arcs ? arcs * ARC + 12 : 0}px`);
  return true;
}

function placed(node, left, top, width = null, height = null) {
  node.style.left = `${left}px`;
  node.style.top = `${top}px`;
  if (width !== null) node.style.width = `${width}px`;
  if (height !== null) node.style.height = `${height}px`;
  return node;
}
