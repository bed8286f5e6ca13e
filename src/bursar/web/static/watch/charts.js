// Charts as SVG: lines with bands and marks, and stacked bars. All texts and numbers come from the server. Colours are
// classes, so a change of theme needs no redrawing.

import { el, svg } from "../annotate/dom.js";

const LEFT = 52;
const BOTTOM = 44;
const TOP = 12;
const LETTER = 7; // approximate width of a character in pixels
const REACH = 40; // largest distance from the pointer to a point, in pixels
const DASHES = { dash: "7 5", dot: "2 4", dashdot: "8 4 2 4" };
let made = 0;

/** A figure with a chart; `draw` renders it for a width. */
function figure(chart, height, draw) {
  const readout = el("p", { class: "readout", "aria-live": "polite", hidden: true });
  const frame = el("div", { class: "plot", role: "group", tabindex: "0", "aria-label": `${chart.words} Use arrow keys to move between points.` });
  frame.style.minHeight = `${height}px`; // prevents layout shifts
  const node = el("figure", { class: "chart" }, heading(chart), frame);
  let width = 0;
  let spots = [];
  let at = -1;
  const ring = svg("circle", { class: "ring", r: 8, visibility: "hidden" });

  const hide = () => {
    readout.hidden = true;
    ring.setAttribute("visibility", "hidden");
    at = -1;
  };
  const show = (index) => {
    at = index;
    const { x, y, text } = spots[at];
    readout.textContent = text;
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
    const drawn = draw(width, height);
    spots = drawn.spots;
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, drawn.nodes, ring);
    frame.replaceChildren(picture, readout);
  };
  frame.addEventListener("pointermove", (event) => {
    const box = frame.getBoundingClientRect();
    const nearest = near(spots, event.clientX - box.left, event.clientY - box.top);
    if (nearest < 0) hide();
    else if (nearest !== at) show(nearest);
  });
  frame.addEventListener("pointerleave", hide);
  frame.addEventListener("blur", hide);
  frame.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") hide();
    if (!step || !spots.length) return;
    event.preventDefault();
    show((at + step + spots.length) % spots.length);
  });
  new ResizeObserver(paint).observe(frame);
  return node;
}

const heading = ({ title, measure }) =>
  title ? el("figcaption", {}, el("h3", {}, el("bdi", {}, title)), measure ? el("span", { class: "aside" }, measure) : null) : null;

function near(spots, x, y) {
  let best = -1;
  let least = REACH;
  spots.forEach((spot, index) => {
    const inside = spot.box && x >= spot.box[0] && x <= spot.box[1] && y >= spot.box[2] && y <= spot.box[3];
    const away = inside ? 0 : spot.box ? Infinity : Math.hypot(spot.x - x, spot.y - y);
    if (away < least) [best, least] = [index, away];
  });
  return best;
}

// -- lines -----------------------------------------------------------------------------------------------------------

/** Lines, bands and marks over two axes of numbers. */
export function lineChart(chart, height = 260) {
  return figure(chart, height, (width) => {
    const { lines = [], marks = [], bands = [], rules = [], stems = [], bars = [], corners = [] } = chart;
    const names = lines.filter((line) => line.label && line.points.length);
    const room = names.length ? Math.min(Math.max(...names.map((line) => short(line.name).length)) * LETTER + 18, width / 3) : 14;
    const box = { left: LEFT, right: width - room, top: TOP, bottom: height - BOTTOM };
    const x = scale(chart.x.range, box.left, box.right);
    const y = scale(chart.y.range, box.bottom, box.top);
    const clip = `clip-${(made += 1)}`;
    const inner = [
      bars.map(([low, high, share]) => rect("count", x(low) + 1, box.bottom - share * 0.16 * (box.bottom - box.top), x(high) - x(low) - 2, share * 0.16 * (box.bottom - box.top))),
      bands.map((band) => svg("path", { class: `band look-${band.look}`, d: `M${edge(band, "high", x, y)} L${edge(band, "low", x, y, true)} Z` })),
      rules.map(({ look, from, to }) => svg("line", { class: `rule look-${look}`, x1: x(from[0]), y1: y(from[1]), x2: x(to[0]), y2: y(to[1]) })),
      stems.map(([at, low, high]) => svg("line", { class: "stem", x1: x(at), x2: x(at), y1: y(low), y2: y(high) })),
      marks.filter((mark) => mark.low !== null).map((mark) => svg("line", { class: `whisker look-${mark.look}`, x1: x(mark.x), x2: x(mark.x), y1: y(mark.low), y2: y(mark.high) })),
      lines.toReversed().map((line) => svg("path", { class: `line look-${line.look}`, "stroke-dasharray": DASHES[line.dash], d: `M${line.points.map((at) => `${x(at[0])} ${y(at[1])}`).join(" L")}` })),
    ];
    const points = lines.toReversed().flatMap((line) => (line.shape === "none" ? [] : line.points.map((at) => shape(line, x(at[0]), y(at[1])))));
    const dots = marks.map((mark) => svg("circle", { class: `dot look-${mark.look}`, cx: x(mark.x), cy: y(mark.y), r: mark.size ?? 4 }));
    const spots = [...lines.flatMap((line) => line.points), ...marks.map((mark) => [mark.x, mark.y, mark.text])]
      .filter((at) => at[2])
      .map((at) => ({ x: x(at[0]), y: y(at[1]), text: at[2] }));
    const nodes = [
      svg("clipPath", { id: clip }, rect("", box.left, box.top - 6, box.right - box.left + 6, box.bottom - box.top + 6)),
      axes(chart, box, x, y, ticks(chart.x.range, (box.right - box.left) / 80, leastStep(chart.x))),
      corners.length ? [text("corner", box.left + 8, box.top + 14, corners[0]), text("corner end", box.right - 6, box.bottom - 0.16 * (box.bottom - box.top) - 8, corners[1])] : [],
      svg("g", { "clip-path": `url(#${clip})` }, inner.flat()),
      points,
      dots,
      endings(names, x, y, box),
    ].flat(2);
    return { nodes, spots: unique(spots) };
  });
}

/** The name of each line at its end, without overlaps. */
function endings(lines, x, y, box) {
  const places = lines.map((line) => ({ line, x: x(line.points.at(-1)[0]), y: y(line.points.at(-1)[1]) })).sort((a, b) => a.y - b.y);
  const gap = 16;
  places.forEach((place, k) => {
    if (k) place.y = Math.max(place.y, places[k - 1].y + gap);
  });
  for (let k = places.length - 1, most = box.bottom; k >= 0; k -= 1, most -= gap) {
    places[k].y = Math.min(places[k].y, k === places.length - 1 ? most : places[k + 1].y - gap);
  }
  return places.map((place) => text(`name look-${place.line.look}`, place.x + 10, place.y + 4, short(place.line.name)));
}

const edge = (band, what, x, y, back = false) => {
  const points = band.x.map((at, k) => `${x(at)} ${y(band[what][k])}`);
  return (back ? points.reverse() : points).join(" L");
};

function shape({ shape: kind, look }, x, y) {
  const name = `dot look-${look}`;
  if (kind === "square") return rect(name, x - 3.5, y - 3.5, 7, 7);
  if (kind === "diamond") return svg("path", { class: name, d: `M${x} ${y - 5} l5 5 l-5 5 l-5 -5 Z` });
  if (kind === "triangle-up") return svg("path", { class: name, d: `M${x} ${y - 5} l5 9 h-10 Z` });
  return svg("circle", { class: name, cx: x, cy: y, r: 4 });
}

// -- bars ------------------------------------------------------------------------------------------------------------

/** Stacked bars, one per round. */
export function stackChart(chart, height = 280) {
  return figure(chart, height, (width) => {
    const { stacks } = chart;
    const box = { left: LEFT, right: width - 8, top: TOP + 10, bottom: height - BOTTOM };
    const y = scale(chart.y.range, box.bottom, box.top);
    const step = (box.right - box.left) / stacks.length;
    const wide = Math.min(step * 0.62, 72);
    const hatch = `hatch-${(made += 1)}`;
    const spots = [];
    const nodes = [svg("defs", {}, svg("pattern", { id: hatch, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("line", { class: "hatch", x1: 0, x2: 0, y1: 0, y2: 6 })))];
    nodes.push(...axes(chart, box, null, y, []));
    stacks.forEach((stack, k) => {
      const middle = box.left + step * (k + 0.5);
      let base = 0;
      for (const part of stack.parts) {
        const [low, high] = [y(base), y(base + part.size)];
        base += part.size;
        nodes.push(rect(`bar look-${part.look}`, middle - wide / 2, high, wide, low - high));
        if (part.hatched) nodes.push(svg("rect", { x: middle - wide / 2, y: high, width: wide, height: low - high, fill: `url(#${hatch})` }));
        spots.push({ x: middle, y: (low + high) / 2, text: part.text, box: [middle - wide / 2, middle + wide / 2, high, low] });
      }
      if (k % Math.ceil(28 / step) === 0) nodes.push(text("tick middle", middle, box.bottom + 18, stack.name));
      if (step > stack.text.length * LETTER + 6) nodes.push(text("total middle", middle, y(base) - 6, stack.text));
    });
    nodes.push(text("axis middle", (box.left + box.right) / 2, height - 6, chart.x.title));
    return { nodes, spots };
  });
}

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

/** Rows of a name, an interval on a shared axis, and a value; `zero` is marked. */
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

// -- axes ------------------------------------------------------------------------------------------------------------

function axes(chart, box, x, y, across) {
  const nodes = [];
  const up = ticks(chart.y.range, (box.bottom - box.top) / 44, leastStep(chart.y));
  const [upward, along] = [namer(up, chart.y), namer(across, chart.x)];
  for (const value of up) {
    nodes.push(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y(value), y2: y(value) }));
    nodes.push(text("tick end", box.left - 8, y(value) + 4, upward(value)));
  }
  for (const value of across) nodes.push(text("tick middle", x(value), box.bottom + 18, along(value)));
  if (x) nodes.push(text("axis middle", (box.left + box.right) / 2, box.bottom + 38, chart.x.title));
  if (chart.y.title) nodes.push(svg("text", { class: "axis middle", transform: `translate(12 ${(box.top + box.bottom) / 2}) rotate(-90)` }, chart.y.title));
  nodes.push(svg("line", { class: "base", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  return nodes;
}

/** Formats the ticks of an axis: all with the same decimals; money with none or two. */
function namer(values, { prefix = "", suffix = "" }) {
  const needs = Math.max(0, ...values.map((value) => (String(value).split(".")[1] ?? "").length));
  const digits = prefix && needs ? Math.max(2, needs) : needs;
  return (value) => `${prefix}${value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })}${suffix}`;
}

/** Money is marked in whole cents. */
const leastStep = ({ prefix }) => (prefix ? 0.01 : 0);

/** Round numbers within a range, about as many as wanted. */
export function ticks([low, high], wanted, least = 0) {
  const rough = (high - low) / Math.max(2, wanted);
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const factors = power <= least ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10];
  const step = Math.max(least, power * factors.find((times) => times * power >= rough * 0.999));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) found.push(Number((k * step).toPrecision(12)));
  return found;
}

const scale = ([low, high], from, to) => (value) => Math.round(10 * (from + ((value - low) / (high - low || 1)) * (to - from))) / 10;
const rect = (name, x, y, width, height) => svg("rect", { class: name || null, x, y, width: Math.max(0, width), height: Math.max(0, height) });
const text = (name, x, y, words) => svg("text", { class: name, x, y }, words);
const short = (name, most = 16) => (name.length <= most ? name : `${name.slice(0, most - 1)}…`);
const unique = (spots) => spots.filter((spot, k) => spots.findIndex((other) => other.text === spot.text) === k);
