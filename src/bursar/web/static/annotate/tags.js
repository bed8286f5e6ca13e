// Tagging where every word has a label. A state is one label a word, null where none is chosen yet.

import { CellBoard } from "./cells.js";
import { count, hueOf } from "./dom.js";
import { Palette } from "./labels.js";

export const tags = {
  onText: true,
  start: (task, item) => new Array(item.words?.length ?? 0).fill(null),
  read: (value) => value.slice(),
  value: (state) => state,
  missing(state) {
    const open = state.filter((label) => label === null).length;
    return open ? `${count(open, "word")} of ${state.length} ${open === 1 ? "has" : "have"} no label` : "";
  },
  accept: (state, suggested) => state.map((label, word) => label ?? suggested[word] ?? null),
  summary: (state) => [`${state.filter((label) => label !== null).length} of ${state.length} words`],
  keys: (task) => [
    ["← → ↑ ↓", "go from word to word"],
    ["⇧ and arrows", "choose several words"],
    [`1 to ${Math.min(9, task.labels.length)}`, "label the word and go on"],
    ...(task.labels.length > 9 ? [["/ or 0", "find a label by its name"]] : []),
    ["Space", "take what the model says of this word"],
    ["e", "go to the next word without a label"],
    ["⌫", "take the label back"],
  ],
  open: (panel, bench) => new TagView(panel, bench),
};

class TagView {
  constructor(panel, bench) {
    this.bench = bench;
    this.task = bench.task;
    this.board = null;
    this.drawn = null; // how each cell looks
    this.palette = new Palette({
      labels: this.task.labels,
      name: this.task.name,
      choose: (label, byKey, found) => this.put(label, found),
      leave: () => this.focus(),
    });
    panel.append(this.palette.root);
  }

  mount(root) {
    this.board = new CellBoard(root, this.bench.passage, {
      moved: () => this.moved(),
      chosen: (start, end, dragged) => {
        this.board.meant = dragged;
        this.draw();
      },
      made: (words) => this.drawn && this.drawCells(words),
    }, `Text, to label every word for ${this.task.name}`);
    this.board.at = this.board.anchor = Math.max(0, this.at ?? this.bench.state.indexOf(null));
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
    this.bench.announce(`${this.bench.passage.word(at)}, ${this.bench.state[at] ?? "no label"}`);
    this.draw();
  }

  /** Label what is chosen, and go to the word after it; whoever searched for the label will search again. */
  put(label, found = false) {
    this.bench.activate();
    if (!this.board || label === undefined || label === null) return;
    const [start, end] = this.board.stretch;
    this.fill(start, end, label);
    this.board.moveTo(end);
    if (!tags.missing(this.bench.state)) this.bench.done();
    else if (found && this.bench.state[this.board.at] === null) this.palette.find();
    else this.focus();
  }

  fill(start, end, label) {
    const next = this.bench.state.map((old, word) => (word >= start && word < end ? label : old));
    this.bench.set(next, `${this.bench.passage.slice(start, end)}: ${label ?? "taken back"}`);
  }

  back() {
    const [start, end] = this.board.stretch;
    if (this.bench.state.slice(start, end).every((label) => label === null)) this.board.moveTo(start - 1);
    else this.fill(start, end, null);
  }

  key(event) {
    if (!this.board) return false;
    const { key } = event;
    if (this.board.key(event)) return true;
    if (key === "Escape" && this.board.meant) {
      this.board.collapse();
      this.draw();
    } else if (key === " ") this.put(this.bench.suggestion?.label[this.board.at]);
    else if (key === "Backspace" || key === "Delete") this.back();
    else if (key === "e") {
      const { state } = this.bench;
      const after = state.indexOf(null, this.board.at + 1);
      this.board.moveTo(after >= 0 ? after : Math.max(0, state.indexOf(null)));
    } else return this.palette.key(event);
    return true;
  }

  draw() {
    const { state, suggestion, active } = this.bench;
    const here = this.board ? state[this.board.at] : null;
    this.palette.draw({
      chosen: here ? [here] : [],
      suggested: this.board && suggestion ? [suggestion.label[this.board.at]] : [],
      numbers: active,
    });
    if (this.board) this.drawCells(Object.keys(this.board.cells).map(Number));
  }

  drawCells(words) {
    const { state, suggestion, active } = this.bench;
    const [start, end] = this.board.stretch;
    const hues = new Map(this.task.labels.map((label, at) => [label, hueOf(at)]));
    words.forEach((word) => {
      const label = state[word];
      const ghost = label === null ? (suggestion?.label[word] ?? null) : null;
      const light = word === this.board.at && active ? "cursor" : "";
      const chosen = this.board.meant && word >= start && word < end ? "chosen" : "";
      const said = label !== null ? `set ${hues.get(label)}` : ghost !== null ? "ghost" : "";
      const look = `word ${said} ${light} ${chosen}`;
      const text = label ?? ghost ?? "";
      const key = `${look} ${text}`;
      if (this.drawn[word] === key) return;
      this.drawn[word] = key;
      this.board.cells[word].className = look;
      this.board.cells[word].lastChild.textContent = text;
    });
  }
}
