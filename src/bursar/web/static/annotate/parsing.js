// Parsing: a head and a label for every word. A state is `[head, label]` for each, null where not yet known.

import { button, count, el, kbd, shown } from "./dom.js";
import { Palette } from "./labels.js";
import { shortened } from "./text.js";
import { loopOf } from "./tree.js";
import { TreeBoard } from "./treeboard.js";

/** What keeps this from being a tree, in words; "" if nothing does. */
export function missingOf(state, nameOf = (word) => `word ${word}`) {
  const open = state.filter(([head]) => head === null).length;
  if (open) return `${count(open, "word")} of ${state.length} ${open === 1 ? "has" : "have"} no head`;
  const loop = loopOf(state.map(([head]) => head));
  if (loop.length) return `${loop.map((word) => `“${nameOf(word)}”`).join(" and ")} hang on each other`;
  const bare = state.filter(([, label]) => label === null).length;
  return bare ? `${count(bare, "arc")} ${bare === 1 ? "has" : "have"} no label` : "";
}

export const parsing = {
  onText: true,
  start: (task, item) => (item.words ?? []).map(() => [null, null]),
  read: (value) => value.map((entry) => entry.slice()),
  value: (state) => state,
  missing: (state, task, item, passage) => missingOf(state, (word) => passage.word(word - 1)),
  accept: (state, suggested) => state.map((own, at) => (own[0] === null ? (suggested[at]?.slice() ?? own) : own)),
  summary: (state) => [`${state.filter((entry) => !entry.includes(null)).length} of ${state.length} words`],
  keys: (task) => [
    ["← →", "go from word to word"],
    ["h or ↑", "choose its head: arrows, then ↵"],
    ["r", "the word hangs from the root"],
    [`1 to ${Math.min(9, task.labels.length)}`, "label the word's arc"],
    ...(task.labels.length > 9 ? [["/ or 0", "find a label by its name"]] : []),
    ["Space", "take what the model says of this word"],
    ["e", "go to the next word that lacks something"],
    ["⌫", "take the head back"],
  ],
  open: (panel, bench) => new TreeView(panel, bench),
};

class TreeView {
  constructor(panel, bench) {
    this.bench = bench;
    this.task = bench.task;
    this.at = 1; // the word in hand
    this.aim = null; // where its head is being looked for
    this.board = null;
    this.labels = new Palette({
      labels: this.task.labels,
      name: this.task.name,
      choose: (label) => this.putLabel(label),
      leave: () => this.focus(),
    });
    this.said = el("p", { class: "prompt" });
    this.note = el("p", { class: "hint", hidden: true });
    const doing = (name, key, act) => button("button small", () => this.doing(act), {}, name, kbd(key));
    const buttons = el(
      "div",
      { class: "buttons" },
      doing("Head", "h", () => this.beginAim()),
      doing("Root", "r", () => this.putHead(this.at, 0, false)),
      doing("Clear", "⌫", () => this.clear()),
    );
    panel.append(this.said, buttons, this.labels.root, this.note);
  }

  /** What a button does, and then the keys are for the tree again. */
  doing(act) {
    this.bench.activate();
    act();
    this.focus();
  }

  get state() {
    return this.bench.state;
  }

  get entry() {
    return this.state[this.at - 1] ?? [null, null];
  }

  name(place) {
    return place === 0 ? "root" : shortened(this.bench.passage.word(place - 1), 24);
  }

  mount(root) {
    this.at = Math.min(Math.max(1, this.at), this.bench.passage.length);
    this.board = new TreeBoard(
      root,
      this.bench.passage,
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

  // -- where one is -------------------------------------------------------------------------------------------------
  /** A click takes a word in hand. If that one is looking for its head, or has none yet, the next click is its head. */
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
    const said = head === null ? "no head" : `${label ?? "no label"} of ${this.name(head)}`;
    this.bench.announce(`${this.name(place)}, ${said}`);
    this.draw();
    this.board?.reveal(place);
  }

  /** Look for the head of the word in hand. */
  beginAim() {
    this.look(this.entry[0] ?? (this.at > 1 ? this.at - 1 : 0));
  }

  look(place) {
    this.aim = place;
    this.bench.announce(`Head of ${this.name(this.at)}: ${this.name(place)}? Enter takes it.`);
    this.draw();
    this.board?.reveal(place);
  }

  /** To the next word that lacks something, or stay. */
  onward() {
    const next = this.lacking(this.at);
    if (next) this.go(next);
    else this.draw();
    this.focus();
    if (!missingOf(this.state)) this.bench.done();
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

  /** Hang a word on another. The label stays if it can; the root's and an only one need not be asked for. */
  putHead(word, head, typing = true) {
    this.bench.activate();
    [this.at, this.aim, this.held] = [word, null, null];
    const [before, label] = this.entry;
    const rooted = head === 0 ? this.task.labels.find((one) => one.toLowerCase() === "root") : undefined;
    const kept = before !== null && (before === 0) === (head === 0) ? label : null;
    const next = rooted ?? kept ?? (this.task.labels.length === 1 ? this.task.labels[0] : null);
    const said = `${this.name(word)} hangs on ${this.name(head)}${next ? `: ${next}` : ""}`;
    this.bench.set(this.with(word, [head, next]), said);
    if (next !== null) return this.onward();
    this.draw();
    if (this.labels.search && typing) this.labels.find();
    else this.focus();
  }

  putLabel(label) {
    this.bench.activate();
    const [head] = this.entry;
    if (head === null) {
      this.bench.tell("Choose the word's head first.");
      this.focus();
      return;
    }
    this.bench.set(this.with(this.at, [head, label]), `${this.name(this.at)}: ${label} of ${this.name(head)}`);
    this.onward();
  }

  clear() {
    this.aim = null;
    this.bench.set(this.with(this.at, [null, null]), `${this.name(this.at)}: taken back`);
    this.draw();
  }

  takeSuggestion() {
    const said = this.bench.suggestion?.label[this.at - 1];
    if (!said) return;
    this.bench.set(this.with(this.at, said.slice()), `${this.name(this.at)}: ${said[1]} of ${this.name(said[0])}`);
    this.onward();
  }

  // -- keys ---------------------------------------------------------------------------------------------------------
  key(event) {
    if (!this.board || !this.state.length) return false;
    const forward = this.bench.passage.direction === "rtl" ? -1 : 1;
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
    const suggested = this.bench.suggestion?.label ?? [];
    this.board?.show({ state, at, aim, suggested, active: this.bench.active });
    const [head, label] = this.entry;
    const ghost = suggested[at - 1]?.[0] === head ? [suggested[at - 1][1]] : [];
    this.labels.draw({ chosen: label ? [label] : [], suggested: ghost, numbers: this.bench.active });
    this.said.textContent = state.length ? this.question(head) : "This text has no words.";
    const roots = state.filter(([one]) => one === 0).length;
    const many = roots > 1 && this.task.single_root !== false;
    shown(this.note, many).textContent = many ? `${roots} words hang from the root; most schemes want one.` : "";
  }

  question(head) {
    const word = `“${this.name(this.at)}”`;
    if (this.aim !== null) return `Head of ${word}: “${this.name(this.aim)}”?`;
    if (head === null) return `Drag ${word} to its head, or click it and then its head.`;
    return `${word} → ${this.name(head)}`;
  }
}
