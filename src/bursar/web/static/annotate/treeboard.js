// A row of words with arcs above. A word is dragged to its head, or clicked before its head is clicked.

import { count, el, svg } from "./dom.js";
import { shortened } from "./text.js";
import { arcsOf, heightsOf, loopOf, windowAround } from "./tree.js";

const MOST = 300; // words shown at a time
const STEP = 28; // pixels per level of arcs
const LONGEST = 18; // characters of a label on an arc

/**
 * Positions count from 1, the root is 0. Calls `hooks.pulled(word, head, touch)` when a word was dragged to its head,
 * `hooks.clicked(place, touch)`, and `hooks.picked(word)` when its arc was clicked.
 */
export class TreeBoard {
  constructor(root, passage, hooks, label) {
    this.root = root;
    this.passage = passage;
    this.hooks = hooks;
    this.cells = new Map(); // by place
    this.span = null; // first and last word of the row
    this.from = null; // the word being dragged
    this.over = -1; // the place under the pointer
    this.look = { state: [], at: 1, aim: null, suggested: [], active: false };
    this.row = el("div", { class: "row-of-words", dir: passage.direction });
    this.arcs = svg("svg", { class: "arcs", "aria-hidden": "true" });
    const role = { tabindex: 0, role: "application", "aria-roledescription": "dependency tree", "aria-label": label };
    this.box = el("div", { class: "tree", ...role }, el("div", { class: "canvas" }, this.arcs, this.row));
    root.replaceChildren(el("p", { class: "reading small", dir: "auto", lang: "" }, passage.text), this.box);
    this.listen();
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.row);
  }

  close() {
    this.watcher.disconnect();
    this.root.replaceChildren();
  }

  /** Show a state: `{ state, at, aim, suggested, active }`. */
  show(look) {
    this.look = look;
    this.lay();
    this.draw();
  }

  reveal(place) {
    this.cells.get(place)?.scrollIntoView({ block: "nearest", inline: "center" });
  }

  /** Lay out the row of words; of a long text, the part around the current word. */
  lay() {
    const { passage, look } = this;
    const wanted = windowAround(look.aim || look.at, passage.length, MOST, this.span);
    if (this.span && wanted[0] === this.span[0] && wanted[1] === this.span[1]) return;
    this.span = wanted;
    this.cells = new Map([[0, el("span", { class: "cell root", "data-place": 0 }, "root")]]);
    for (let place = wanted[0]; place <= wanted[1]; place += 1) {
      this.cells.set(place, el("span", { class: "cell", "data-place": place }, passage.word(place - 1)));
    }
    const gap = (words) => (words > 0 ? [el("span", { class: "cell gap" }, `… ${count(words, "word")}`)] : []);
    const [root, ...words] = this.cells.values();
    this.row.replaceChildren(root, ...gap(wanted[0] - 1), ...words, ...gap(passage.length - wanted[1]));
  }

  // -- pointers -----------------------------------------------------------------------------------------------------
  listen() {
    const { box } = this;
    box.addEventListener("pointerdown", (event) => this.press(event));
    box.addEventListener("pointermove", (event) => this.drag(event));
    box.addEventListener("pointerup", () => this.release());
    box.addEventListener("pointercancel", () => this.letGo());
  }

  press(event) {
    const arc = event.target.closest("[data-arc]");
    const place = placeOf(event.target);
    if (event.button !== 0 || (place < 0 && !arc)) return;
    this.box.focus({ preventScroll: true });
    if (arc) {
      event.preventDefault();
      this.hooks.picked(Number(arc.dataset.arc));
      return;
    }
    this.from = { place, touch: event.pointerType === "touch" };
    this.over = place;
    if (this.from.touch) return; // a finger scrolls the row
    this.box.setPointerCapture?.(event.pointerId);
    event.preventDefault();
  }

  drag(event) {
    if (!this.from || this.from.place === 0) return;
    this.over = placeOf(document.elementFromPoint(event.clientX, event.clientY));
    const frame = this.arcs.getBoundingClientRect();
    const [x, y] = [event.clientX - frame.left, Math.min(this.baseline, event.clientY - frame.top)];
    this.arcs.querySelector(".pull")?.remove();
    this.arcs.append(svg("path", { class: "pull", d: `M${this.centre(this.from.place)},${this.baseline} L${x},${y}` }));
    this.light();
  }

  release() {
    const { from, over } = this;
    this.letGo();
    if (!from || over < 0) return;
    if (over === from.place) this.hooks.clicked(over, from.touch);
    else if (from.place > 0) this.hooks.pulled(from.place, over, from.touch);
  }

  letGo() {
    [this.from, this.over] = [null, -1];
    this.draw();
  }

  // -- drawing ------------------------------------------------------------------------------------------------------
  /** The centre of a cell, or the end of the row if it is not shown. */
  centre(place) {
    const cell = this.cells.get(place);
    if (cell) return cell.offsetLeft + cell.offsetWidth / 2;
    const left = place < this.span[0] === (this.passage.direction === "ltr");
    return left ? this.cells.get(0).offsetWidth : this.row.scrollWidth;
  }

  /** Mark the cells that are current, aimed at, or incomplete. */
  light() {
    const { state, at, aim, active } = this.look;
    const loop = new Set(loopOf(state.map(([head]) => head)));
    const target = this.from && this.over !== this.from.place ? this.over : aim;
    for (const [place, cell] of this.cells) {
      const marks = [
        "cell",
        place === 0 && "root",
        place > 0 && state[place - 1].includes(null) && "lacking",
        loop.has(place) && "looped",
        active && place > 0 && place === at && "cursor",
        place === target && "aim",
      ];
      const look = marks.filter(Boolean).join(" ");
      if (cell.className !== look) cell.className = look;
    }
    return loop;
  }

  draw() {
    const { state, suggested } = this.look;
    const loop = this.light();
    const ghosts = state.flatMap(([head], word) => {
      const arc = head === null ? suggested[word] : null;
      return arc ? [{ word: word + 1, head: arc[0], label: arc[1], ghost: true }] : [];
    });
    const near = (place) => place > 0 && this.cells.has(place);
    const arcs = [...arcsOf(state), ...ghosts].filter(({ word, head }) => near(word) || near(head));
    const heights = heightsOf(arcs, state.length);
    this.baseline = (Math.max(1, ...heights) + 1) * STEP + 22;
    this.arcs.setAttribute("width", this.row.scrollWidth);
    this.arcs.setAttribute("height", this.baseline);
    const ends = arcs.map(({ word, head }) => [this.centre(head), this.centre(word)]); // measured before any is drawn
    this.arcs.replaceChildren(...arcs.map((arc, at) => this.arc(arc, heights[at], loop, ends[at])));
  }

  arc({ word, head, label, ghost }, height, loop, [from, to]) {
    const side = to > from ? 1 : -1;
    const [x1, x2] = [from + 7 * side, to - 3 * side];
    const [base, top] = [this.baseline - 1, this.baseline - 22 - height * STEP];
    const bend = Math.min(16, Math.abs(x2 - x1) / 2) * side;
    const up = `M${x1},${base} L${x1},${top + 12} Q${x1},${top} ${x1 + bend},${top}`;
    const down = `L${x2 - bend},${top} Q${x2},${top} ${x2},${top + 12} L${x2},${base - 7}`;
    const looped = loop.has(word) && loop.has(head);
    const marks = ["arc", ghost && "ghost", looped && "looped", word === this.look.at && !ghost && "picked"];
    const text = shortened(label ?? "?", LONGEST);
    const [middle, room] = [(x1 + x2) / 2, text.length * 6.6 + 10];
    return svg(
      "g",
      { class: marks.filter(Boolean).join(" "), "data-arc": word },
      svg("path", { class: "reach", d: `${up} ${down}` }),
      svg("path", { class: "line", d: `${up} ${down}` }),
      svg("path", { class: "tip", d: `M${x2 - 4},${base - 8} L${x2 + 4},${base - 8} L${x2},${base} Z` }),
      svg("rect", { class: "plate", x: middle - room / 2, y: top - 9, width: room, height: 18, rx: 9 }),
      svg("text", { x: middle, y: top + 4, "text-anchor": "middle" }, text),
    );
  }
}

const placeOf = (node) => Number(node?.closest?.("[data-place]")?.dataset.place ?? -1);
