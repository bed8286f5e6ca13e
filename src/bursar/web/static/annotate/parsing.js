// Parsing: a head and a label for every word. The state is `[head, label]` per word, null where unknown.

import { chip, wordsOf } from "./chips.js";
import { button, count, el, kbd, shown } from "./dom.js";
import { Palette } from "./labels.js";
import { shortened } from "./text.js";
import { loopOf } from "./tree.js";
import { TreeBoard } from "./treeboard.js";

/** What is missing for a complete tree; "" if nothing is. */
export function missingOf(state, nameOf = (word) => `word ${word}`) {
  const open = state.filter(([head]) => head === null).length;
  if (open) return `${count(open, "word")} of ${state.length} ${open === 1 ? "has" : "have"} no head`;
  const loop = loopOf(state.map(([head]) => head));
  if (loop.length) return `${loop.map((word) => `“${nameOf(word)}”`).join(" and ")} form a loop`;
  const bare = state.filter(([, label]) => label === null).length;
  return bare ? `${count(bare, "arc")} ${bare === 1 ? "has" : "have"} no label` : "";
}

export const widget = {
  onText: true,
  start: (task, item) => (item.words ?? []).map(() => [null, null]),
  read: (value) => value.map((entry) => entry.slice()),
  value: (state) => state,
  review(label, task, item) {
    const words = wordsOf(item);
    const headOf = (head) => ` ← ${head ? words[head - 1] : "root"}`;
    return label.flatMap(([head, name], at) => [el("bdi", {}, words[at] ?? ""), " ", chip(task, name), headOf(head), el("br")]);
  },
  missing: (state, task, item, passage) => missingOf(state, (word) => passage.word(word - 1)),
  accept: (state, suggested) => state.map((own, at) => (own[0] === null ? (suggested[at]?.slice() ?? own) : own)),
  summary: (state) => [`${state.filter((entry) => !entry.includes(null)).length} of ${state.length} words`],
  keys: (task) => [
    ["← →", "move from word to word"],
    ["h or ↑", "choose the head: arrows, then ↵"],
    ["r", "attach the word to the root"],
    [`1 to ${Math.min(9, task.labels.length)}`, "label the arc"],
    ...(task.labels.length > 9 ? [["/ or 0", "search for a label"]] : []),
    ["Space", "accept the suggestion for this word"],
    ["e", "go to the next incomplete word"],
    ["⌫", "clear the head"],
  ],
  open: (panel, context) => new TreeView(panel, context),
};

class TreeView {
  constructor(panel, context) {
    this.context = context;
    this.task = context.task;
    this.at = 1; // the current word
    this.aim = null; // the candidate head while choosing one
    this.board = null;
    this.labels = new Palette({
      labels: this.task.labels,
      name: this.task.name,
      choose: (label) => this.putLabel(label),
      leave: () => this.focus(),
    });
    this.prompt = el("p", { class: "prompt" });
    this.note = el("p", { class: "hint", hidden: true });
    const doing = (name, key, act) => button("button small", () => this.doing(act), {}, name, kbd(key));
    const buttons = el(
      "div",
      { class: "buttons" },
      doing("Head", "h", () => this.beginAim()),
      doing("Root", "r", () => this.putHead(this.at, 0, false)),
      doing("Clear", "⌫", () => this.clear()),
    );
    panel.append(this.prompt, buttons, this.labels.root, this.note);
  }

  /** Run a button's action, then focus the tree again. */
  doing(act) {
    this.context.activate();
    act();
    this.focus();
  }

  get state() {
    return this.context.state;
  }

  get entry() {
    return this.state[this.at - 1] ?? [null, null];
  }

  name(place) {
    return place === 0 ? "root" : shortened(this.context.passage.word(place - 1), 24);
  }

  mount(root) {
    this.at = Math.min(Math.max(1, this.at), this.context.passage.length);
    this.board = new TreeBoard(
      root,
      this.context.passage,
      {
        pulled: (word, head, touch) => this.putHead(word, head, !touch),
        clicked: (place, touch) => this.click(place, touch),
        picked: (word) => this.go(word),
      },
      `Words, to choose the head of each for ${this.task.name}`,
    );
  }

  unmount() {
    this.aim = null;
    this.board?.close();
    this.board = null;
  }

  focus() {
    this.board?.box.focus({ preventScroll: true });
  }

  // -- navigation ---------------------------------------------------------------------------------------------------
  /** A click selects a word. If that word has no head, or one is being chosen, the next click sets its head. */
  click(place, touch) {
    const seeks = this.aim !== null || (this.held === this.at && this.entry[0] === null);
    if (seeks && place !== this.at) return this.putHead(this.at, place, !touch);
    if (place === 0) return;
    this.held = place;
    this.go(place);
  }

  go(place) {
    if (place < 1 || place > this.state.length) return;
    [this.at, this.aim] = [place, null];
    const [head, label] = this.entry;
    const arc = head === null ? "no head" : `${label ?? "no label"} of ${this.name(head)}`;
    this.context.announce(`${this.name(place)}, ${arc}`);
    this.draw();
    this.board?.reveal(place);
  }

  /** Start choosing the head of the current word. */
  beginAim() {
    this.look(this.entry[0] ?? (this.at > 1 ? this.at - 1 : 0));
  }

  look(place) {
    this.aim = place;
    this.context.announce(`Head of ${this.name(this.at)}: ${this.name(place)}? Press Enter to accept.`);
    this.draw();
    this.board?.reveal(place);
  }

  /** Go to the next incomplete word, if any. */
  onward() {
    const next = this.lacking(this.at);
    if (next) this.go(next);
    else this.draw();
    this.focus();
    if (!missingOf(this.state)) this.context.done();
  }

  lacking(after) {
    const lacks = (word) => this.state[word - 1].includes(null);
    const words = this.state.map((_, at) => at + 1);
    return words.find((word) => word > after && lacks(word)) ?? words.find(lacks) ?? 0;
  }

  // -- edits --------------------------------------------------------------------------------------------------------
  with(word, entry) {
    return this.state.map((old, at) => (at === word - 1 ? entry : old));
  }

  /** Attach a word to a head. Keeps the label where possible; sets the root label or an only label itself. */
  putHead(word, head, typing = true) {
    this.context.activate();
    [this.at, this.aim, this.held] = [word, null, null];
    const [before, label] = this.entry;
    const rooted = head === 0 ? this.task.labels.find((one) => one.toLowerCase() === "root") : undefined;
    const kept = before !== null && (before === 0) === (head === 0) ? label : null;
    const next = rooted ?? kept ?? (this.task.labels.length === 1 ? this.task.labels[0] : null);
    const note = `${this.name(word)} attached to ${this.name(head)}${next ? `: ${next}` : ""}`;
    this.context.set(this.with(word, [head, next]), note);
    if (next !== null) return this.onward();
    this.draw();
    if (this.labels.search && typing) this.labels.find();
    else this.focus();
  }

  putLabel(label) {
    this.context.activate();
    const [head] = this.entry;
    if (head === null) {
      this.context.showStatus("Choose the head of the word first.");
      this.focus();
      return;
    }
    this.context.set(this.with(this.at, [head, label]), `${this.name(this.at)}: ${label} of ${this.name(head)}`);
    this.onward();
  }

  clear() {
    this.aim = null;
    this.context.set(this.with(this.at, [null, null]), `${this.name(this.at)}: cleared`);
    this.draw();
  }

  takeSuggestion() {
    const suggested = this.context.suggestion?.label[this.at - 1];
    if (!suggested) return;
    const [head, label] = suggested;
    this.context.set(this.with(this.at, [head, label]), `${this.name(this.at)}: ${label} of ${this.name(head)}`);
    this.onward();
  }

  // -- keys ---------------------------------------------------------------------------------------------------------
  key(event) {
    if (!this.board || !this.state.length) return false;
    const forward = this.context.passage.direction === "rtl" ? -1 : 1;
    const way = { ArrowRight: forward, ArrowLeft: -forward }[event.key];
    return this.aim === null ? this.wordKey(event, way) : this.headKey(event, way);
  }

  wordKey(event, way) {
    const { key } = event;
    if (way) this.go(Math.min(this.state.length, Math.max(1, this.at + way)));
    else if (key === "Home" || key === "End") this.go(key === "Home" ? 1 : this.state.length);
    else if (key === "h" || key === "ArrowUp") this.beginAim();
    else if (key === "r") this.putHead(this.at, 0);
    else if (key === "e") this.go(this.lacking(this.at));
    else if (key === " ") this.takeSuggestion();
    else if (key === "Backspace" || key === "Delete") this.clear();
    else return this.labels.key(event);
    return true;
  }

  headKey(event, way) {
    const { key } = event;
    if (way) {
      const to = this.aim + way === this.at ? this.at + way : this.aim + way;
      if (to >= 0 && to <= this.state.length) this.look(to);
    } else if (["Home", "0", "r"].includes(key)) this.putHead(this.at, 0);
    else if (["Enter", " ", "h"].includes(key)) this.putHead(this.at, this.aim);
    else if (key === "Escape" || key === "ArrowDown") {
      this.aim = null;
      this.draw();
    } else return false;
    return true;
  }

  // -- drawing ------------------------------------------------------------------------------------------------------
  draw() {
    const { state, at, aim } = this;
    const suggested = this.context.suggestion?.label ?? [];
    this.board?.show({ state, at, aim, suggested, active: this.context.active });
    const [head, label] = this.entry;
    const ghost = suggested[at - 1]?.[0] === head ? [suggested[at - 1][1]] : [];
    this.labels.draw({ chosen: label ? [label] : [], suggested: ghost, numbers: this.context.active });
    this.prompt.textContent = state.length ? this.question(head) : "This text has no words.";
    const roots = state.filter(([one]) => one === 0).length;
    const many = roots > 1 && this.task.single_root !== false;
    shown(this.note, many).textContent = many ? `${roots} words are attached to the root; most schemes allow one.` : "";
  }

  question(head) {
    const word = `“${this.name(this.at)}”`;
    if (this.aim !== null) return `Head of ${word}: “${this.name(this.aim)}”?`;
    if (head === null) return `Drag ${word} to its head, or click ${word} and then its head.`;
    return `${word} → ${this.name(head)}`;
  }
}
