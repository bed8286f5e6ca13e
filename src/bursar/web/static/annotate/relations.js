// Relations: labelled links between typed spans, drawn as arcs. For the state, see links.js.
// If a task on the same screen marks such spans, they can be linked here.

import { Board } from "./board.js";
import { chip, wordsOf } from "./chips.js";
import { button, el, kbd, quoted, shown, svg } from "./dom.js";
import { same } from "./draft.js";
import { Palette } from "./labels.js";
import { byPlace, entitiesOf, retyped, withLink, withoutEntity, withoutLink } from "./links.js";
import { arcBetween, arcLevels, drawLight, drawMarks } from "./marks.js";
import { noneButton, sameStretch, showRows, spanAfter, spanAt, spanText, withSpans } from "./spans.js";
import { shortened } from "./text.js";

const HIGHEST = 6; // levels of arcs
const NOWHERE = { left: 0, right: 0, top: -100 };

export const widget = {
  onText: true,
  start: () => ({ entities: [], links: [], none: false }),
  read(value) {
    const entities = entitiesOf({ entities: [], links: value });
    return { entities, links: byPlace(value), none: value.length === 0 };
  },
  value: ({ links }) => links,
  review(label, task, item) {
    if (!label.length) return [el("span", { class: "aside" }, "no relation")];
    const words = wordsOf(item);
    const span = ([start, end]) => el("bdi", {}, words.slice(start, end).join(" "));
    return label.map(([one, other, name]) => el("div", {}, span(one), " ", chip(task, name), " → ", span(other)));
  },
  missing: ({ links, none }) => (links.length || none ? "" : "link two spans, or confirm that there are no relations"),
  accept(state, suggested) {
    const taken = suggested.reduce(withLink, state);
    return { ...taken, none: taken.links.length === 0 };
  },
  summary({ links, none }) {
    return none ? ["no relations"] : links.slice(0, 4).map(([, , label]) => quoted(label, { class: "tag" }));
  },
  keys: (task) => [
    ["← → ↑ ↓", "move from word to word; with ⇧ select several"],
    [`1 to ${Math.min(9, task.entity_types.length)}`, "mark the selection as a span of this type"],
    ["e", "go to the next span"],
    ["r", "start a relation here: choose the other span with arrows, then ↵ or the number of a relation"],
    ["l", "go to the next relation"],
    ["x", "reverse the relation"],
    ["⌫", "delete the relation or the span"],
    ["n", "confirm that there are no relations"],
  ],
  open: (panel, context) => new LinkView(panel, context),
};

class LinkView {
  constructor(panel, context) {
    this.context = context;
    this.task = context.task;
    this.board = null;
    this.rest();
    const leave = () => this.focus();
    const { entity_types: types, labels } = this.task;
    this.types = new Palette({ labels: types, name: "spans", choose: (type) => this.putSpan(type), leave });
    this.labels = new Palette({ labels, name: "relations", choose: (label) => this.putLink(label), leave });
    this.prompt = el("span", {});
    this.swap = button("button small", () => this.turn(), {}, "Reverse", kbd("x"));
    this.list = el("ul", { class: "entries", "aria-label": `Relations of ${this.task.name}` });
    this.none = noneButton("No relations", () => this.setNone());
    const prompt = el("div", { class: "prompt" }, this.prompt, this.swap);
    panel.append(prompt, this.types.root, this.labels.root, this.list, this.none.root);
  }

  /** Clear the selection and any link in progress. */
  rest() {
    this.entity = null; // the selected span
    this.link = -1; // the selected link
    this.source = null; // the first span of a link in progress
    this.target = null; // the candidate for the second span
    this.pair = null; // two spans whose relation is being chosen
    this.first = null; // a clicked span: the next clicked span is linked with it
  }

  get state() {
    return this.context.state;
  }

  get entities() {
    return entitiesOf(this.state, this.context.partnerSpans(this.task.entity_types));
  }

  get covering() {
    return this.board ? this.entities[spanAt(this.entities, this.board.at)] : undefined;
  }

  owns(span) {
    return !this.context.partnerSpans(this.task.entity_types).some((other) => sameStretch(other, span));
  }

  describe(span) {
    return `${shortened(this.context.passage.slice(span[0], span[1]), 30)} (${span[2]})`;
  }

  mount(root) {
    const hooks = {
      moved: () => this.moved(),
      chosen: (start, end, dragged) => this.chosen(start, end, dragged),
      marked: (index) => this.hit(this.marks[index].span),
      linked: (index) => this.hitArc(index),
      resized: () => this.drawText(),
    };
    this.board = new Board(root, this.context.passage, hooks, `Text, to link the spans of ${this.task.name}`);
    this.arcs = svg("svg", { class: "arcs", "aria-hidden": "true" });
    this.board.box.append(this.arcs);
    const start = this.at ?? this.entities[0]?.[0] ?? 0;
    this.board.at = this.board.anchor = Math.min(start, Math.max(0, this.context.passage.length - 1));
    this.height = 0;
  }

  unmount() {
    this.at = this.board?.at;
    this.rest();
    this.board?.close();
    this.board = null;
  }

  focus() {
    this.board?.box.focus({ preventScroll: true });
  }

  // -- choosing -----------------------------------------------------------------------------------------------------
  moved() {
    const { first } = this;
    this.rest();
    if (this.board.dragging) this.first = first; // a click on a second span links it
    const [start, end] = this.board.stretch;
    const span = this.covering;
    this.context.announce(end - start > 1 || !span ? this.context.passage.slice(start, end) : this.describe(span));
    this.draw();
  }

  chosen(start, end, dragged) {
    const span = dragged ? null : this.entities[spanAt(this.entities, start)];
    if (span) return this.hit(span);
    this.board.meant = true;
    this.rest();
    this.draw();
  }

  /** A span was clicked: the first of a relation, or the second. */
  hit(span) {
    this.focus();
    const first = this.source ?? this.first;
    this.board.select(span[0], span[0] + 1, false);
    if (first && !sameStretch(first, span)) return this.join(first, span);
    this.pick(span);
  }

  pick(span) {
    this.rest();
    this.board.select(span[0], span[0] + 1, false);
    this.entity = this.first = span;
    this.context.announce(`${this.describe(span)}. Select another span to link the two.`);
    this.draw();
  }

  join(from, to) {
    this.rest();
    this.pair = [from, to];
    if (this.task.labels.length === 1) return this.putLink(this.task.labels[0]);
    this.context.announce(`${this.describe(from)} to ${this.describe(to)}: choose the relation.`);
    this.draw();
  }

  beginLink() {
    const span = this.entity ?? this.covering;
    if (!span) return this.context.showStatus("Go to a span first.");
    if (this.entities.length < 2) return this.context.showStatus("There is no other span to link to.");
    this.rest();
    this.source = span;
    this.aim(1);
  }

  /** Move to another candidate for the second span. */
  aim(way) {
    const others = this.entities.filter((span) => !sameStretch(span, this.source));
    const after = others.findIndex(([start]) => start > this.source[0]);
    const here = this.target ? others.findIndex((span) => sameStretch(span, this.target)) : after - 1;
    this.target = others[(Math.max(here, -1) + way + others.length) % others.length];
    this.board.select(this.target[0], this.target[0] + 1, false);
    this.context.announce(`${this.describe(this.source)} to ${this.describe(this.target)}? Press Enter to accept.`);
    this.draw();
  }

  pickLink(index) {
    this.rest();
    this.link = index;
    this.draw();
  }

  hitArc(at) {
    const ghost = this.ghosts[at - this.state.links.length];
    if (ghost) this.context.set(withLink(this.state, ghost), `${ghost[2]} accepted`);
    else this.pickLink(at);
  }

  // -- edits --------------------------------------------------------------------------------------------------------
  putSpan(type) {
    this.context.activate();
    if (!this.board || !this.context.passage.length) return;
    const [start, end] = this.board.stretch;
    const span = (this.board.meant ? null : (this.entity ?? this.covering)) ?? [start, end, type];
    if (!this.owns(span)) return this.context.showStatus(`${this.describe(span)} belongs to another task. Change it there.`);
    this.board.collapse();
    this.context.set(retyped(this.state, span, type), this.describe([span[0], span[1], type]));
    this.pick([span[0], span[1], type]);
    this.focus();
  }

  putLink(label) {
    this.context.activate();
    const picked = this.state.links[this.link];
    if (!this.pair && !picked) return this.context.showStatus("Select two spans first.");
    const [from, to] = this.pair ?? picked;
    this.place(this.pair ? this.state : withoutLink(this.state, this.link), [from, to, label]);
  }

  /** Add a link and keep it selected, so that another number changes its relation. */
  place(state, link) {
    const [from, to, label] = link;
    const own = [from, to].filter((span) => this.owns(span));
    const entities = withSpans(state.entities, own, true);
    this.context.set(withLink({ ...state, entities }, link), `${this.describe(from)} ${label} ${this.describe(to)}`);
    this.pickLink(this.state.links.findIndex((other) => same(other, link)));
    this.focus();
  }

  turn() {
    if (this.pair) return this.join(this.pair[1], this.pair[0]);
    const [from, to, label] = this.state.links[this.link] ?? [];
    if (label !== undefined) this.place(withoutLink(this.state, this.link), [to, from, label]);
  }

  dropLink(index) {
    const link = this.state.links[index];
    if (!link) return;
    this.rest();
    this.context.set(withoutLink(this.state, index), `${link[2]} deleted`);
    this.focus();
  }

  dropEntity(span) {
    if (!this.owns(span)) return this.context.showStatus(`${this.describe(span)} belongs to another task. Delete it there.`);
    this.rest();
    this.context.set(withoutEntity(this.state, span), `${this.describe(span)} deleted`);
  }

  setNone() {
    this.context.activate();
    if (this.state.links.length) return this.context.showStatus("Delete the relations first.");
    this.context.set({ ...this.state, none: !this.state.none }, this.state.none ? "Cleared" : "No relations");
    if (this.state.none) this.context.done();
  }

  // -- keys ---------------------------------------------------------------------------------------------------------
  key(event) {
    if (!this.board) return false;
    return this.source ? this.linkingKey(event) : this.plainKey(event);
  }

  linkingKey(event) {
    const forward = this.context.passage.direction === "rtl" ? -1 : 1;
    const way = { ArrowRight: forward, ArrowLeft: -forward, ArrowDown: 1, ArrowUp: -1, e: 1 }[event.key];
    if (way) this.aim(way);
    else if (["Enter", " ", "r"].includes(event.key)) this.join(this.source, this.target);
    else if (event.key === "Escape") {
      this.rest();
      this.draw();
    } else {
      this.pair = [this.source, this.target]; // a number key sets the relation directly
      if (this.labels.key(event)) return true;
      this.pair = null;
      return false;
    }
    return true;
  }

  plainKey(event) {
    const { key } = event;
    const { links, none } = this.state;
    if (this.board.key(event)) return true;
    if (key === "Escape" && (this.pair || this.link >= 0 || this.entity || this.board.meant)) {
      this.rest();
      this.board.collapse();
      this.draw();
    } else if (key === "r") this.beginLink();
    else if (key === "x") this.turn();
    else if (key === "n") this.setNone();
    else if (key === "e") {
      const picked = this.entities.findIndex((one) => this.entity && sameStretch(one, this.entity));
      const next = this.entities[spanAfter(this.entities, this.board.at, picked)];
      if (next) this.pick(next);
    } else if (key === "l") {
      if (links.length) this.pickLink((this.link + 1) % links.length);
    } else if (key === "Backspace" || key === "Delete") {
      const span = this.entity ?? this.covering;
      if (none) this.setNone();
      else if (this.link >= 0) this.dropLink(this.link);
      else if (span) this.dropEntity(span);
    } else return (this.pair || this.link >= 0 ? this.labels : this.types).key(event);
    return true;
  }

  // -- drawing ------------------------------------------------------------------------------------------------------
  draw() {
    if (this.link >= this.state.links.length) this.link = -1;
    this.drawText();
    this.drawPanel();
  }

  drawText() {
    if (!this.board) return;
    const { suggestion } = this.context;
    const own = (link) => this.state.links.some((other) => same(other, link));
    this.ghosts = this.state.none || !suggestion ? [] : suggestion.label.filter((link) => !own(link));
    this.marks = this.marksOf(this.entities);
    const links = [...this.state.links, ...this.ghosts];
    const boxes = drawMarks(this.board, this.marks, { arcs: this.height });
    const boxOf = (end) => boxes[this.marks.findIndex(({ span }) => sameStretch(span, end))]?.[0] ?? NOWHERE;
    const arcs = links.map(([from, to, label]) => [boxOf(from), boxOf(to), label]);
    const levels = arcLevels(arcs).map((level) => Math.min(level, HIGHEST - 1));
    const height = Math.max(0, ...levels.map((level) => level + 1));
    if (height !== this.height) {
      this.height = height; // the line spacing changes: draw again
      return this.drawText();
    }
    const lookOf = (at) => (at >= this.state.links.length ? "ghost" : at === this.link ? "picked" : "");
    const drawn = ([from, to, label], at) => arcBetween(from, to, levels[at], { label, index: at, look: lookOf(at) });
    this.arcs.replaceChildren(...arcs.map(drawn));
    drawLight(this.board, this.context.active);
  }

  marksOf(entities) {
    const lit = [this.entity, this.source, this.target, ...(this.pair ?? [])].filter(Boolean);
    const ends = this.ghosts.flatMap(([from, to]) => [from, to]);
    return withSpans(entities, ends, true).map((span) => ({
      start: span[0],
      end: span[1],
      label: span[2],
      span,
      hue: Math.max(0, this.task.entity_types.indexOf(span[2])),
      ghost: !entities.includes(span),
      picked: lit.some((one) => sameStretch(one, span)),
      name: this.describe(span),
    }));
  }

  drawPanel() {
    const { state } = this;
    const { passage, active, suggestion } = this.context;
    const linking = this.pair !== null || this.source !== null || this.link >= 0;
    const here = active && !linking ? (this.entity ?? this.covering) : null;
    shown(this.types.root, !linking);
    shown(this.labels.root, linking);
    this.types.draw({ chosen: here ? [here[2]] : [], numbers: active });
    this.labels.draw({ chosen: this.link >= 0 ? [state.links[this.link][2]] : [], numbers: active });
    const pair = this.pair ?? (this.source ? [this.source, this.target] : state.links[this.link]);
    shown(this.swap, this.pair || this.link >= 0);
    const some = this.entities.length > 1;
    const hint = some ? "Select two spans to link them." : "Mark at least two spans, then link them.";
    if (pair) this.prompt.replaceChildren(spanText(passage, pair[0]), " → ", spanText(passage, pair[1]));
    else this.prompt.textContent = hint;
    const rows = state.links.map(([from, to, label], at) => ({
      parts: [spanText(passage, from), quoted(label, { class: "what" }), spanText(passage, to)],
      hue: Math.max(0, this.task.labels.indexOf(label)),
      picked: active && at === this.link,
      name: `${this.describe(from)} ${label} ${this.describe(to)}`,
    }));
    showRows(this.list, rows, { drop: (at) => this.dropLink(at), pick: (at) => this.pickRow(at) });
    this.none.draw(rows.length > 0, state.none, suggestion);
  }

  pickRow(at) {
    this.context.activate();
    this.pickLink(at);
    this.focus();
  }
}
