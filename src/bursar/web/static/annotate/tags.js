// Tagging with a label for every word. The state is one label per word, null where missing.

import { CellBoard } from "./cells.js";
import { chip, wordsOf } from "./chips.js";
import { count, el, hueOf } from "./dom.js";
import { Palette } from "./labels.js";

export const widget = {
  onText: true,
  start: (task, item) => new Array(item.words?.length ?? 0).fill(null),
  read: (value) => value.slice(),
  value: (state) => state,
  review(label, task, item) {
    const words = wordsOf(item);
    return label.flatMap((tag, at) => [el("bdi", {}, words[at] ?? ""), " ", chip(task, tag), " "]);
  },
  missing(state) {
    const open = state.filter((label) => label === null).length;
    return open ? `${count(open, "word")} of ${state.length} ${open === 1 ? "has" : "have"} no label` : "";
  },
  accept: (state, suggested) => state.map((label, word) => label ?? suggested[word] ?? null),
  summary: (state) => [`${state.filter((label) => label !== null).length} of ${state.length} words`],
  keys: (task) => [
    ["← → ↑ ↓", "move from word to word"],
    ["⇧ and arrows", "select several words"],
    [`1 to ${Math.min(9, task.labels.length)}`, "label the word and continue"],
    ...(task.labels.length > 9 ? [["/ or 0", "search for a label"]] : []),
    ["Space", "accept the suggestion for this word"],
    ["e", "go to the next word without a label"],
    ["⌫", "clear the label"],
  ],
  open: (panel, context) => new TagView(panel, context),
};

class TagView {
  constructor(panel, context) {
    this.context = context;
    this.task = context.task;
    this.board = null;
    this.drawn = null; // the drawn look of each cell
    this.palette = new Palette({
      labels: this.task.labels,
      name: this.task.name,
      choose: (label, byKey, found) => this.put(label, found),
      leave: () => this.focus(),
    });
    panel.append(this.palette.root);
  }

  mount(root) {
    this.board = new CellBoard(root, this.context.passage, {
      moved: () => this.moved(),
      chosen: (start, end, dragged) => {
        this.board.meant = dragged;
        this.draw();
      },
      made: (words) => this.drawn && this.drawCells(words),
    }, `Text, to label every word for ${this.task.name}`);
    this.board.at = this.board.anchor = Math.max(0, this.at ?? this.context.state.indexOf(null));
    this.drawn = [];
  }

  unmount() {
    this.at = this.board?.at;
    this.board?.close();
    this.board = this.drawn = null;
  }

  focus() {
    this.board?.box.focus({ preventScroll: true });
  }

  moved() {
    const { at } = this.board;
    this.context.announce(`${this.context.passage.word(at)}, ${this.context.state[at] ?? "no label"}`);
    this.draw();
  }

  /** Label the selection and go to the next word; after a search, open the search again. */
  put(label, found = false) {
    this.context.activate();
    if (!this.board || label === undefined || label === null) return;
    const [start, end] = this.board.stretch;
    this.fill(start, end, label);
    this.board.moveTo(end);
    if (!widget.missing(this.context.state)) this.context.done();
    else if (found && this.context.state[this.board.at] === null) this.palette.find();
    else this.focus();
  }

  fill(start, end, label) {
    const next = this.context.state.map((old, word) => (word >= start && word < end ? label : old));
    this.context.set(next, `${this.context.passage.slice(start, end)}: ${label ?? "cleared"}`);
  }

  back() {
    const [start, end] = this.board.stretch;
    if (this.context.state.slice(start, end).every((label) => label === null)) this.board.moveTo(start - 1);
    else this.fill(start, end, null);
  }

  key(event) {
    if (!this.board) return false;
    const { key } = event;
    if (this.board.key(event)) return true;
    if (key === "Escape" && this.board.meant) {
      this.board.collapse();
      this.draw();
    } else if (key === " ") this.put(this.context.suggestion?.label[this.board.at]);
    else if (key === "Backspace" || key === "Delete") this.back();
    else if (key === "e") {
      const { state } = this.context;
      const after = state.indexOf(null, this.board.at + 1);
      this.board.moveTo(after >= 0 ? after : Math.max(0, state.indexOf(null)));
    } else return this.palette.key(event);
    return true;
  }

  draw() {
    const { state, suggestion, active } = this.context;
    const here = this.board ? state[this.board.at] : null;
    this.palette.draw({
      chosen: here ? [here] : [],
      suggested: this.board && suggestion ? [suggestion.label[this.board.at]] : [],
      numbers: active,
    });
    if (this.board) this.drawCells(Object.keys(this.board.cells).map(Number));
  }

  drawCells(words) {
    const { state, suggestion, active } = this.context;
    const [start, end] = this.board.stretch;
    const hues = new Map(this.task.labels.map((label, at) => [label, hueOf(at)]));
    words.forEach((word) => {
      const label = state[word];
      const ghost = label === null ? (suggestion?.label[word] ?? null) : null;
      const light = word === this.board.at && active ? "cursor" : "";
      const chosen = this.board.meant && word >= start && word < end ? "chosen" : "";
      const tone = label !== null ? `set ${hues.get(label)}` : ghost !== null ? "ghost" : "";
      const look = `word ${tone} ${light} ${chosen}`;
      const text = label ?? ghost ?? "";
      const key = `${look} ${text}`;
      if (this.drawn[word] === key) return;
      this.drawn[word] = key;
      this.board.cells[word].className = look;
      this.board.cells[word].lastChild.textContent = text;
    });
  }
}
