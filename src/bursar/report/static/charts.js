// Charts as SVG, for reports and web pages alike. A chart is described by `bursar.report.charts`: all words and numbers
// come ready from there; this only finds places for them. Colours are classes, so light and dark need no redrawing.

import { el, svg } from "./elements.js";

const LEFT = 52; // pixels for the numbers of the upward axis, at least
const BOTTOM = 44;
const TOP = 16;
const LETTER = 7; // pixels, roughly, of a letter of 12 or 13 pixels
const REACH = 40; // pixels from a pointer to the point that it means
const CROWDED = 18; // pixels between the points of a line, on average, that are too few to show them all
const WIDEST = 116; // pixels of a category that its bars take their widths from
const LONGEST = 22; // letters of a category's name
const SLOPE = 0.64; // how high a letter of a slanting name reaches, in letters
const DASHES = { dash: "7 5", dot: "2 4", dashdot: "8 4 2 4" };
let made = 0;

/** A chart with its heading. */
export const chartFigure = (chart) => el("figure", { class: "chart" }, heading(chart), plot(chart));

const heading = ({ title, measure }) =>
  title ? el("figcaption", {}, el("h3", {}, el("bdi", {}, title)), measure ? el("span", { class: "aside" }, measure) : null) : null;

/** A chart that fits its place: it is drawn anew when its width changes, and on a `redraw` event. */
export function plot(chart) {
  const { words, height = 260 } = chart;
  const readout = el("p", { class: "readout", "aria-live": "polite", hidden: true });
  const frame = el("div", { class: "plot", role: "group", tabindex: "0", "aria-label": `${words} Arrow keys go from point to point.` });
  frame.style.minHeight = `${height}px`; // so that nothing jumps when it is drawn
  const ring = svg("circle", { class: "ring", r: 8, visibility: "hidden" });
  let width = 0;
  let spots = [];
  let at = -1;

  const hide = () => {
    readout.hidden = true;
    ring.setAttribute("visibility", "hidden");
    at = -1;
  };
  const show = (index) => {
    at = index;
    const { x, y, text: words } = spots[at];
    readout.textContent = words;
    readout.hidden = false;
    const half = readout.offsetWidth / 2;
    const left = Math.min(Math.max(x, half), Math.max(width - half, half));
    const above = y - readout.offsetHeight - 14;
    readout.style.left = `${Math.round(left - half)}px`;
    readout.style.top = `${Math.round(above > 0 ? above : y + 16)}px`;
    ring.setAttribute("cx", x);
    ring.setAttribute("cy", y);
    ring.setAttribute("visibility", "visible");
  };
  const paint = () => {
    const now = Math.floor(frame.clientWidth);
    if (!now || now === width) return;
    width = now;
    hide();
    const drawn = draw(chart, width, height);
    spots = drawn.spots;
    const size = { width, height: drawn.height, viewBox: `0 0 ${width} ${drawn.height}` };
    frame.replaceChildren(svg("svg", { ...size, "aria-hidden": "true" }, drawn.nodes, ring), readout);
  };
  const point = (event) => {
    const box = frame.getBoundingClientRect();
    const nearest = near(spots, event.clientX - box.left, event.clientY - box.top);
    if (nearest < 0) hide();
    else if (nearest !== at) show(nearest);
  };
  frame.addEventListener("pointermove", point);
  frame.addEventListener("pointerdown", point);
  frame.addEventListener("pointerleave", hide);
  frame.addEventListener("blur", hide);
  frame.addEventListener("redraw", paint);
  frame.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") hide();
    if (!step || !spots.length) return;
    event.preventDefault();
    show(at < 0 && step < 0 ? spots.length - 1 : (at + step + spots.length) % spots.length);
  });
  new ResizeObserver(paint).observe(frame);
  return frame;
}

/** The spot that a pointer means: the box it is in, the upper one of two, else the nearest point. */
function near(spots, x, y) {
  let best = -1;
  let least = REACH;
  spots.forEach((spot, index) => {
    const inside = spot.box && x >= spot.box[0] && x <= spot.box[1] && y >= spot.box[2] && y <= spot.box[3];
    const away = inside ? 0 : spot.box ? Infinity : Math.hypot(spot.x - x, spot.y - y);
    if (away < least || (inside && least === 0)) [best, least] = [index, away];
  });
  return best;
}

// -- what is drawn ---------------------------------------------------------------------------------------------------

function draw(chart, width, height) {
  const { lines = [], marks = [], bands = [], rules = [], bars = [], cells = [], notes = [] } = chart;
  const named = lines.filter((line) => line.label && known(line).length);
  const plan = layout(chart, named, width, height);
  const { box, x, y } = plan;
  made += 1;
  const [clip, hatch] = [`clip-${made}`, `hatch-${made}`];
  const boxes = [...cells.map((cell) => cellBox(cell, plan)), ...bars.map((bar) => barBox(bar, plan))];
  const inner = [
    cells.map((cell, k) => shaded(cell, boxes[k])),
    bars.map((bar, k) => barRect(bar, boxes[cells.length + k], hatch)),
    bands.map((band) => svg("path", { class: `band look-${band.look}`, d: `M${[...edge(band, "high", x, y), ...edge(band, "low", x, y).reverse()].join(" L")} Z` })),
    rules.map(({ look, start, end, dash = "dash" }) => svg("line", { class: `rule look-${look}`, "stroke-dasharray": DASHES[dash], x1: x(start[0]), y1: y(start[1]), x2: x(end[0]), y2: y(end[1]) })),
    marks.filter((mark) => mark.low != null).map((mark) => whisker(mark, x, y)),
    lines.toReversed().flatMap((line) => (line.joined === false ? [] : pieces(line).map((piece) => svg("path", { class: `line look-${line.look}`, "stroke-dasharray": DASHES[line.dash], d: `M${piece.map((at) => `${x(at[0])} ${y(at[1])}`).join(" L")}` })))),
  ];
  const dots = [
    ...marks.map((mark) => shape(mark, x(mark.x), y(mark.y))),
    ...lines.toReversed().flatMap((line) => dotted(line, x, y, box).map(([left, top]) => shape(line, left, top))),
  ];
  const points = [...lines.flatMap(known), ...marks.map((mark) => [mark.x, mark.y, mark.text])];
  const spots = [
    ...points.filter((at) => at[2]).map((at) => ({ x: x(at[0]), y: y(at[1]), text: at[2] })),
    ...[...cells, ...bars].flatMap(({ text: words }, k) => (words ? [{ ...middle(boxes[k]), text: words, box: boxes[k] }] : [])),
  ];
  const nodes = [
    svg("clipPath", { id: clip }, rect("", box.left - 1, box.top - 6, box.right - box.left + 7, box.bottom - box.top + 7)),
    bars.some((bar) => bar.hatched) ? hatching(hatch) : null,
    axes(chart, plan),
    svg("g", { "clip-path": `url(#${clip})` }, inner.flat(2)),
    written(cells, boxes),
    dots,
    notes.map((note) => (chart.x.names && plan.step < wide(note.text) + 6 ? null : text(`note ${note.anchor ?? "middle"}`, x(note.x), y(note.y) - 6, note.text))),
    endings(named, x, y, box),
  ];
  return { nodes: nodes.flat(2), spots: unique(spots), height: plan.height };
}

/** The points of a line that have a place. */
const known = (line) => line.points.filter((at) => at[1] !== null);

/** Which points of a line get a dot: all of them, or only some if a dot at each would hide the line. */
function dotted(line, x, y, box) {
  const places = known(line).map((at) => [x(at[0]), y(at[1])]);
  if (line.joined === false || places.length < (box.right - box.left) / CROWDED) return places;
  let last = null;
  return places.filter((place) => {
    const far = !last || Math.hypot(place[0] - last[0], place[1] - last[1]) >= 2 * CROWDED;
    if (far) last = place;
    return far;
  });
}

/** The stretches of a line between its gaps. */
function pieces(line) {
  const found = [[]];
  for (const at of line.points) {
    if (at[1] === null) found.push([]);
    else found.at(-1).push(at);
  }
  return found.filter((piece) => piece.length > 1);
}

const edge = (band, what, x, y) => band.x.map((at, k) => `${x(at)} ${y(band[what][k])}`);

/** An interval, upward or, where it is flat, across. */
function whisker({ look, x: at, y: value, low, high, flat }, x, y) {
  const ends = flat ? { x1: x(low), x2: x(high), y1: y(value), y2: y(value) } : { x1: x(at), x2: x(at), y1: y(low), y2: y(high) };
  return svg("line", { class: `whisker look-${look}`, ...ends });
}

function shape({ shape: kind = "circle", look, open = false, size = 4 }, x, y) {
  const name = `dot look-${look}${open ? " open" : ""}`;
  const path = (d) => svg("path", { class: name, d });
  if (kind === "none") return null;
  if (kind === "square") return rect(name, x - size + 0.5, y - size + 0.5, 2 * size - 1, 2 * size - 1);
  if (kind === "diamond") return path(`M${x} ${y - size - 1} l${size + 1} ${size + 1} l${-size - 1} ${size + 1} l${-size - 1} ${-size - 1} Z`);
  if (kind === "triangle-up") return path(`M${x} ${y - size - 1} l${size + 1} ${2 * size + 1} h${-2 * size - 2} Z`);
  return svg("circle", { class: name, cx: x, cy: y, r: size });
}

const barBox = ({ x: [left, right], y: [low, high] }, { x, y }) => [Math.min(x(left), x(right)), Math.max(x(left), x(right)), Math.min(y(low), y(high)), Math.max(y(low), y(high))];
const cellBox = ({ column, row }, { x, y }) => [x.edge(column - 0.5), x.edge(column + 0.5), y.edge(row + 0.5), y.edge(row - 0.5)];
const middle = ([left, right, top, bottom]) => ({ x: (left + right) / 2, y: (top + bottom) / 2 });

function barRect({ look, hatched }, [left, right, top, bottom], hatch) {
  const size = { x: left, y: top, width: right - left, height: bottom - top };
  return [svg("rect", { class: `bar look-${look}`, ...size }), hatched ? svg("rect", { ...size, fill: `url(#${hatch})` }) : null].filter(Boolean);
}

const hatching = (id) =>
  svg("defs", {}, svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("line", { class: "hatch", x1: 0, x2: 0, y1: 0, y2: 6 })));

/** A cell of a grid: the further from 0, the stronger its colour, and another one below 0. */
function shaded({ shade }, [left, right, top, bottom]) {
  const node = rect(`cell ${shade < 0 ? "cold" : "heat"}`, left + 0.5, top + 0.5, right - left - 1, bottom - top - 1);
  node.style.setProperty("--share", `${Math.round(100 * Math.abs(shade ?? 0))}%`);
  return node;
}

/** What stands in cells: in all of them, or in none where it does not fit into one. */
function written(cells, boxes) {
  const fits = cells.every(({ label = "" }, k) => wide(label) < boxes[k][1] - boxes[k][0] + 6);
  return fits ? cells.map(({ label }, k) => (label ? text("note middle", middle(boxes[k]).x, middle(boxes[k]).y + 4, label) : null)) : [];
}

/** The name of each line at its end, none over another. */
function endings(lines, x, y, box) {
  const places = lines.map((line) => ({ line, x: x(known(line).at(-1)[0]), y: y(known(line).at(-1)[1]) })).sort((a, b) => a.y - b.y);
  const gap = 16;
  places.forEach((place, k) => {
    if (k) place.y = Math.max(place.y, places[k - 1].y + gap);
  });
  for (let k = places.length - 1; k >= 0; k -= 1) {
    places[k].y = Math.min(places[k].y, k === places.length - 1 ? box.bottom : places[k + 1].y - gap);
  }
  return places.map(({ line: { look, name }, x: left, y: down }) => [
    inked(look) ? null : rect(`bar look-${look}`, left + 9, down - 5, 10, 10),
    text(`name look-${look}`, left + (inked(look) ? 10 : 24), down + 4, short(name)),
  ]);
}

/** Whether names may be written in the colour of their line: those of tasks are too light to be read. */
const inked = (look) => !look.startsWith("task-");

// -- axes ------------------------------------------------------------------------------------------------------------

/** Where everything goes: the box between the axes, their scales and what is written along them. */
function layout(chart, named, width, height) {
  const [across, upward] = [chart.x.names, chart.y.names];
  const letters = (words, most) => Math.max(0, ...words.map((name) => short(name, most).length));
  const up = upward ? upward.map((name, k) => [k, short(name, LONGEST)]) : numbers(chart.y, (height - TOP - BOTTOM) / 44);
  const beside = Math.min(letters(up.map((tick) => tick[1]), LONGEST) * LETTER + 14 + (chart.y.title ? 20 : 0), 0.45 * width);
  const left = Math.max(upward ? 0 : LEFT, beside);
  const right = width - (named.length ? Math.min(letters(named.map((line) => line.name), 16) * LETTER + (named.every((line) => inked(line.look)) ? 18 : 32), width / 3) : 14);
  const step = across ? (right - left) / across.length : 0;
  const longest = across ? letters(across, LONGEST) * LETTER : 0;
  const slanting = longest > 5 * LETTER && longest + 8 > step;
  const extra = slanting ? Math.round(longest * SLOPE) : 0;
  const box = { left, right, top: TOP, bottom: height - BOTTOM };
  const x = scale(chart.x, box.left, box.right);
  const every = across ? Math.max(1, Math.ceil((slanting ? 15 : longest + 8) / step)) : 1;
  const along = across ? across.map((name, k) => [k, short(name, LONGEST)]).filter((tick) => tick[0] % every === 0) : numbers(chart.x, (right - left) / 80);
  return { box, x, y: scale(chart.y, box.bottom, box.top), up, along, step, slanting, extra, height: height + extra };
}

function axes(chart, { box, x, y, up, along, slanting, extra }) {
  const nodes = [];
  const grid = (ends) => nodes.push(svg("line", { class: "gridline", ...ends }));
  for (const [value, words] of up) {
    if (chart.y.grid !== false) grid({ x1: box.left, x2: box.right, y1: y(value), y2: y(value) });
    nodes.push(text("tick end", box.left - 8, y(value) + 4, words));
  }
  for (const [value, words] of along) {
    if (chart.x.grid) grid({ x1: x(value), x2: x(value), y1: box.top, y2: box.bottom });
    if (slanting) nodes.push(svg("text", { class: "tick end", transform: `translate(${x(value) + 4} ${box.bottom + 14}) rotate(-40)` }, words));
    else nodes.push(text("tick middle", x(value), box.bottom + 18, words));
  }
  if (chart.x.title) nodes.push(text("axis middle", (box.left + box.right) / 2, box.bottom + 38 + extra, chart.x.title));
  if (chart.y.title) nodes.push(svg("text", { class: "axis middle", transform: `translate(12 ${(box.top + box.bottom) / 2}) rotate(-90)` }, chart.y.title));
  nodes.push(svg("line", { class: "base", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  return nodes;
}

/** The numbers of an axis and how they are written: all with as many digits, and money with none or two. */
function numbers({ low, high, prefix = "", suffix = "" }, wanted) {
  const values = ticks([low, high], wanted, prefix ? 0.01 : 0); // money is marked in whole cents
  const needs = Math.max(0, ...values.map((value) => (String(value).split(".")[1] ?? "").length));
  const digits = prefix && needs ? Math.max(2, needs) : needs;
  const format = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return values.map((value) => [value, `${prefix}${value.toLocaleString("en", format).replace("-", "−")}${suffix}`]);
}

/** Round numbers within a range, about as many as wanted. */
export function ticks([low, high], wanted, least = 0) {
  const rough = (high - low) / Math.max(2, wanted);
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const times = [1, 2, 2.5, 5, 10].find((many) => many * power >= rough * 0.999);
  const whole = power === 1 || power <= least; // rounds, batches and cents have no halves
  const step = Math.max(least, power * (whole && times === 2.5 ? 2 : times));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(Number((k * step).toPrecision(12)));
  return found;
}

/** Values to pixels. Between names, distances are of a category that is not too wide; `edge` knows no such limit. */
function scale({ low, high, names }, from, to) {
  const size = (to - from) / (high - low || 1);
  const place = (value) => Math.round(10 * (from + (value - low) * size)) / 10;
  const most = Math.sign(size) * Math.min(Math.abs(size), WIDEST);
  const near = (value) => Math.round(10 * (place(Math.round(value)) + (value - Math.round(value)) * most)) / 10;
  return Object.assign(names ? near : place, { edge: place });
}

const rect = (name, x, y, width, height) => svg("rect", { class: name || null, x, y, width: Math.max(0, width), height: Math.max(0, height) });
const text = (name, x, y, words) => svg("text", { class: name, x, y }, words);
const wide = (words) => words.length * LETTER;
const short = (name, most = 16) => (name.length <= most ? name : `${name.slice(0, most - 1)}…`);

function unique(spots) {
  const met = new Set();
  const key = ({ x, y, text: words }) => `${x} ${y} ${words}`;
  return spots.filter((spot) => !met.has(key(spot)) && met.add(key(spot)));
}
