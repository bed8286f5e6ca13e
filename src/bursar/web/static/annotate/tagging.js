// Tagging: labelled spans of words. The state is `{ spans, none }`; `none` confirms that there are no spans.

import { Board } from "./board.js";
import { markedText } from "./chips.js";
import { count, el, hueOf, quoted } from "./dom.js";
import { Palette } from "./labels.js";
import { drawLight, drawMarks } from "./marks.js";
import { noneButton, overlap, sameStretch, showRows, spanAfter, spanAt, spanText, withSpan, withSpans } from "./spans.js";
import { shortened } from "./text.js";

export const widget = {
  onText: true,
  start: () => ({ spans: [], none: false }),
  read: (value) => ({ spans: value.map((span) => span.slice()), none: value.length === 0 }),
  value: ({ spans }) => spans,
  spans: ({ spans }) => spans,
  review: (label, task, item) => markedText(item, task, label),
  missing: ({ spans, none }) => (spans.length || none ? "" : "mark the spans, or confirm that there are none"),
  accept({ spans }, suggested, task) {
    const all = withSpans(spans, suggested, task.nested);
    return { spans: all, none: all.length === 0 };
  },
  summary({ spans, none }, task) {
    if (none) return ["no spans"];
    const labels = [...new Set(spans.map(([, , label]) => label))];
    return labels.slice(0, 6).map((label) => {
      const number = spans.filter((span) => span[2] === label).length;
      const look = `tag ${hueOf(task.labels.indexOf(label))}`;
      return el("span", { class: look }, quoted(label), number > 1 ? ` ${number}` : "");
    });
  },
  keys: (task) => [
    ["← → ↑ ↓", "move from word to word"],
    ["⇧ and arrows", "select several words"],
    [`1 to ${Math.min(9, task.labels.length)}`, "label the selection, or relabel the span"],
    ...(task.labels.length > 9 ? [["/ or 0", "search for a label"]] : []),
    ["e", "go to the next span"],
    ["⌫", "delete the span"],
    ["n", "confirm that there are no spans"],
  ],
  open: (panel, context) => new SpanView(panel, context),
};

class SpanView {
  constructor(panel, context) {
    this.context = context;
    this.task = context.task;
    this.picked = -1; // index of the selected span
    this.armed = null; // a label that is applied to the next selection
    this.board = null;
    this.palette = new Palette({
      labels: this.task.labels,
      name: this.task.name,
      choose: (label, byKey) => this.choose(label, byKey),
      leave: () => this.focus(),
    });
    this.none = noneButton("No spans", () => this.setNone());
    this.list = el("ul", { class: "entries", "aria-label": `Spans of ${this.task.name}` });
    panel.append(this.palette.root, this.list, this.none.root);
  }

  get spans() {
    return this.context.state.spans;
  }

  // -- the text -----------------------------------------------------------------------------------------------------
  mount(root) {
    this.board = new Board(root, this.context.passage, {
      moved: () => this.moved(),
      chosen: (start, end, dragged) => this.chosen(start, end, dragged),
      marked: (index) => this.hit(this.marks[index]),
      resized: () => this.drawText(),
    }, `Text, to mark the spans of ${this.task.name}`);
    this.board.at = this.board.anchor = Math.min(this.at ?? 0, Math.max(0, this.context.passage.length - 1));
  }

  unmount() {
    this.at = this.board?.at;
    this.board?.close();
    this.board = null;
  }

  focus() {
    this.board?.box.focus({ preventScroll: true });
  }

  moved() {
    this.picked = -1;
    const { at } = this.board;
    const [start, end] = this.board.stretch;
    const covering = spanAt(this.spans, at);
    const label = covering >= 0 ? `, ${this.spans[covering][2]}` : "";
    const { passage } = this.context;
    this.context.announce(end - start > 1 ? passage.slice(start, end) : `${passage.word(at)}${label}`);
    this.drawText();
    this.drawPanel();
  }

  /** The pointer was released: a drag selects words; a click selects the span, a second click the word. */
  chosen(start, end, dragged) {
    if (dragged && this.armed !== null) return this.put(start, end, this.armed);
    if (!dragged) {
      const hit = spanAt(this.spans, start);
      if (hit >= 0 && this.last !== start) {
        this.picked = hit;
        this.last = start;
        return this.draw();
      }
      if (this.armed !== null) return this.put(start, end, this.armed);
      this.board.meant = true;
    }
    this.last = dragged ? -1 : start;
    this.draw();
  }

  /** A mark was clicked: accept a suggestion, select a span. */
  hit({ ghost, start, end, label, index }) {
    if (ghost) this.put(start, end, label);
    else this.pick(index);
  }

  pick(index) {
    const span = this.spans[index];
    if (!span) return;
    this.context.activate();
    this.board?.select(span[0], span[0] + 1, false);
    this.picked = index;
    this.context.announce(`${this.context.passage.slice(span[0], span[1])}, ${span[2]}`);
    this.draw();
  }

  // -- edits --------------------------------------------------------------------------------------------------------
  choose(label, byKey) {
    const atHand = this.picked >= 0 || this.board?.meant;
    if (!byKey && !(this.context.active && atHand)) {
      this.armed = this.armed === label ? null : label;
      this.context.activate();
      const hint = `Drag over words to mark them as ${label}. Press Escape to stop.`;
      this.context.showStatus(this.armed === null ? "Select words first, then a label." : hint);
      return this.draw();
    }
    this.context.activate();
    if (!this.context.passage.length) return;
    if (this.picked >= 0) return this.put(this.spans[this.picked][0], this.spans[this.picked][1], label);
    if (this.board.meant || this.task.nested) return this.put(...this.board.stretch, label);
    const covering = spanAt(this.spans, this.board.at);
    const [start, end] = covering >= 0 ? this.spans[covering] : this.board.stretch;
    this.put(start, end, label);
  }

  put(start, end, label) {
    const span = [start, end, label];
    const lost = this.spans.length + 1 - withSpan(this.spans, span, this.task.nested).length;
    const relabelled = this.spans.some((other) => sameStretch(other, span));
    const note = lost > 0 && !relabelled ? `; ${count(lost, "span")} replaced` : "";
    this.board?.collapse();
    if (this.board) this.board.at = this.board.anchor = end - 1;
    this.context.set(
      { spans: withSpan(this.spans, span, this.task.nested), none: false },
      `${shortened(this.context.passage.slice(start, end))}: ${label}${note}`,
    );
    this.picked = this.spans.findIndex((other) => sameStretch(other, span) && other[2] === label);
    this.last = -1;
    this.draw();
    this.focus();
  }

  drop(index) {
    const span = this.spans[index];
    if (!span) return;
    this.picked = -1;
    this.context.set(
      { spans: this.spans.filter((_, at) => at !== index), none: false },
      `${shortened(this.context.passage.slice(span[0], span[1]))}: ${span[2]} deleted`,
    );
    this.focus();
  }

  setNone() {
    this.context.activate();
    if (this.spans.length) {
      this.context.showStatus("Delete the spans first.");
      return;
    }
    this.context.set({ spans: [], none: !this.context.state.none }, this.context.state.none ? "Cleared" : "No spans");
    if (this.context.state.none) this.context.done();
  }

  // -- keys ---------------------------------------------------------------------------------------------------------
  key(event) {
    const { key } = event;
    if (this.board?.key(event)) return true;
    if (key === "Escape" && (this.armed !== null || this.picked >= 0 || this.board?.meant)) {
      [this.armed, this.picked] = [null, -1];
      this.board?.collapse();
      this.draw();
    } else if (key === "n") this.setNone();
    else if (key === "e") this.pick(spanAfter(this.spans, this.board?.at ?? 0, this.picked));
    else if (key === "Backspace" || key === "Delete") {
      if (this.context.state.none) this.setNone();
      else this.drop(this.picked >= 0 ? this.picked : spanAt(this.spans, this.board?.at ?? -1));
    } else return this.palette.key(event);
    return true;
  }

  // -- drawing ------------------------------------------------------------------------------------------------------
  draw() {
    if (this.picked >= this.spans.length) this.picked = -1;
    this.drawText();
    this.drawPanel();
  }

  drawText() {
    if (!this.board) return;
    const { suggestion, state, passage } = this.context;
    const hue = (label) => Math.max(0, this.task.labels.indexOf(label));
    const marks = this.spans.map(([start, end, label], index) => ({
      start, end, label, index, hue: hue(label), picked: index === this.picked,
      name: `${label}: ${shortened(passage.slice(start, end))}`,
    }));
    const hidden = (span) => this.spans.some((own) => (this.task.nested ? sameStretch(own, span) : overlap(own, span)));
    const ghosts = state.none || !suggestion ? [] : suggestion.label.filter((span) => !hidden(span));
    for (const [start, end, label] of ghosts) {
      const name = `Suggested: ${label}. Click to accept.`;
      marks.push({ start, end, label, hue: hue(label), ghost: true, name });
    }
    this.marks = marks;
    drawMarks(this.board, marks);
    drawLight(this.board, this.context.active);
  }

  drawPanel() {
    const { state, suggestion, active } = this.context;
    const covering = this.board && !this.board.meant ? spanAt(this.spans, this.board.at) : -1;
    const here = active ? this.spans[this.picked >= 0 ? this.picked : covering] : null;
    this.palette.draw({ chosen: this.armed !== null ? [this.armed] : here ? [here[2]] : [], numbers: active });
    this.palette.root.classList.toggle("armed", this.armed !== null);
    this.none.draw(this.spans.length > 0, state.none, suggestion);
    const rows = this.spans.map((span, index) => ({
      parts: [spanText(this.context.passage, span), quoted(span[2], { class: "what" })],
      hue: Math.max(0, this.task.labels.indexOf(span[2])),
      picked: active && index === this.picked,
      name: `${span[2]}: ${shortened(this.context.passage.slice(span[0], span[1]))}`,
    }));
    showRows(this.list, rows, { drop: (at) => this.drop(at), pick: (at) => this.pick(at) });
  }
}
