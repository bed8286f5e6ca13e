// A text whose words can be selected, with a cursor that moves from word to word. The text is a single node: words are
// found by position, and marks are drawn over it.

import { el } from "./dom.js";

const EDGE = 40; // pixels from the edge of the view where scrolling starts
const REACH = 10; // pixels above and below a word that still count as a hit

/**
 * Words with a cursor. `hooks.moved()` is called after every move, `hooks.chosen(start, end, dragged)` when the pointer
 * is released, `hooks.marked(index)` and `hooks.linked(index)` when it hits a mark or an arc, `hooks.resized()`.
 */
export class Board {
  constructor(root, passage, hooks, label) {
    this.root = root;
    this.passage = passage;
    this.hooks = hooks;
    this.anchor = 0;
    this.at = 0;
    this.meant = false; // the selection was made explicitly, even if it is one word
    this.dragging = false;
    this.under = el("div", { class: "under", "aria-hidden": "true" });
    this.light = el("div", { class: "light", "aria-hidden": "true" });
    this.over = el("div", { class: "over" });
    this.text = el("div", { class: "words", dir: passage.direction, lang: "" });
    const role = { tabindex: 0, role: "application", "aria-roledescription": "text to mark", "aria-label": label };
    this.box = el("div", { class: "board", ...role }, this.under, this.light, this.text, this.over);
    this.fill();
    this.listen();
    root.replaceChildren(this.box);
    this.watcher = new ResizeObserver(() => this.hooks.resized?.());
    this.watcher.observe(this.text);
  }

  fill() {
    this.node = document.createTextNode(this.passage.text);
    this.text.append(this.node);
  }

  close() {
    this.watcher.disconnect();
    this.root.replaceChildren();
  }

  // -- where words are ----------------------------------------------------------------------------------------------
  /** The client rectangles of a range of words. */
  rectsOf(start, end) {
    if (!(start >= 0 && start < end && end <= this.passage.length)) return [];
    const range = document.createRange();
    range.setStart(this.node, this.passage.bounds[start][0]);
    range.setEnd(this.node, this.passage.bounds[end - 1][1]);
    return [...range.getClientRects()].filter((box) => box.width > 0.5);
  }

  boxOf(word) {
    return this.rectsOf(word, word + 1)[0] ?? this.text.getBoundingClientRect();
  }

  /** The word at a point of the window, or -1; with `nearest`, the closest word. */
  wordAt(x, y, nearest = false) {
    const offset = caretAt(x, y, this.node);
    if (offset === null || !this.passage.length) return -1;
    const after = this.passage.bounds.findIndex(([, end]) => end >= offset);
    const last = this.passage.length - 1;
    const near = after < 0 ? [last] : [after, Math.min(after + 1, last), Math.max(after - 1, 0)];
    const hit = near.find((word) => this.rectsOf(word, word + 1).some((box) => within(box, x, y)));
    return hit ?? (nearest ? near[0] : -1);
  }

  // -- selection ----------------------------------------------------------------------------------------------------
  /** Start and end of the selection, end exclusive: at least the word at the cursor. */
  get stretch() {
    return this.passage.length ? [Math.min(this.anchor, this.at), Math.max(this.anchor, this.at) + 1] : [0, 0];
  }

  select(start, end, meant = true) {
    [this.anchor, this.at, this.meant] = [start, end - 1, meant];
    this.reveal();
  }

  /** Clear the selection, keep the cursor. */
  collapse() {
    this.anchor = this.at;
    this.meant = false;
  }

  moveTo(word, extend = false) {
    if (!this.passage.length) return;
    this.at = Math.min(Math.max(word, 0), this.passage.length - 1);
    if (extend) this.meant = true;
    else this.collapse();
    this.reveal();
    this.hooks.moved();
  }

  /** Scroll the cursor into view. */
  reveal() {
    const view = this.root.closest(".stage");
    if (!view || !this.passage.length) return;
    const [box, frame] = [this.boxOf(this.at), view.getBoundingClientRect()];
    if (box.top < frame.top + EDGE) view.scrollBy(0, box.top - frame.top - 2 * EDGE);
    else if (box.bottom > frame.bottom - EDGE) view.scrollBy(0, box.bottom - frame.bottom + 2 * EDGE);
  }

  // -- keys ---------------------------------------------------------------------------------------------------------
  /** Arrow keys move in the direction they point, also in right-to-left texts. */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const forward = this.passage.direction === "rtl" ? -1 : 1;
    const to = {
      ArrowRight: () => this.at + forward,
      ArrowLeft: () => this.at - forward,
      ArrowDown: () => this.onLine(1),
      ArrowUp: () => this.onLine(-1),
      Home: () => 0,
      End: () => this.passage.length - 1,
    }[event.key];
    if (!to || !this.passage.length) return false;
    this.moveTo(to(), event.shiftKey);
    return true;
  }

  /** The word above or below the cursor. */
  onLine(way) {
    const here = this.boxOf(this.at);
    const middle = (here.left + here.right) / 2;
    let [best, distance, line] = [this.at, Infinity, null];
    for (let at = this.at + way; at >= 0 && at < this.passage.length; at += way) {
      const box = this.boxOf(at);
      if (Math.abs(box.top - (line ?? here.top)) < here.height / 2) {
        if (line === null) continue;
      } else if (line !== null) break;
      line ??= box.top;
      const off = Math.abs((box.left + box.right) / 2 - middle);
      if (off < distance) [best, distance] = [at, off];
    }
    return best;
  }

  // -- pointers -----------------------------------------------------------------------------------------------------
  listen() {
    this.box.addEventListener("pointerdown", (event) => this.press(event));
    this.box.addEventListener("pointermove", (event) => this.drag(event));
    this.box.addEventListener("pointerup", (event) => this.release(event));
    this.box.addEventListener("pointercancel", () => (this.dragging = false));
    this.box.addEventListener("copy", (event) => {
      event.clipboardData.setData("text/plain", this.passage.slice(...this.stretch));
      event.preventDefault();
    });
  }

  press(event) {
    if (event.button !== 0) return;
    const drawn = event.target.closest("[data-mark], [data-link]");
    if (drawn) return this.hit(drawn, event);
    const word = this.wordAt(event.clientX, event.clientY);
    if (word < 0) return;
    this.box.focus({ preventScroll: true });
    if (event.shiftKey) [this.at, this.meant] = [word, true];
    else [this.anchor, this.at, this.meant] = [word, word, false];
    this.dragging = true;
    this.box.setPointerCapture?.(event.pointerId);
    event.preventDefault();
    this.hooks.moved();
  }

  /** A mark or an arc was hit. Handled on press, because it may be redrawn before the click event. */
  hit(drawn, event) {
    event.preventDefault();
    this.box.focus({ preventScroll: true });
    if (drawn.dataset.mark !== undefined) this.hooks.marked(Number(drawn.dataset.mark));
    else this.hooks.linked(Number(drawn.dataset.link));
  }

  drag(event) {
    if (!this.dragging) return;
    const word = this.wordAt(event.clientX, event.clientY, true);
    this.scroll(event.clientY);
    if (word < 0 || word === this.at) return;
    [this.at, this.meant] = [word, true];
    this.hooks.moved();
  }

  release() {
    if (!this.dragging) return;
    this.dragging = false;
    this.hooks.chosen(...this.stretch, this.meant);
  }

  scroll(y) {
    const view = this.root.closest(".stage");
    if (!view) return;
    const { top, bottom } = view.getBoundingClientRect();
    if (y < top + EDGE) view.scrollBy(0, -EDGE / 2);
    if (y > bottom - EDGE) view.scrollBy(0, EDGE / 2);
  }
}

const within = ({ left, right, top, bottom }, x, y) =>
  x >= left - 3 && x <= right + 3 && y >= top - REACH && y <= bottom + REACH;

/** The offset in a text node at a point of the window, or null. */
function caretAt(x, y, node) {
  const found = document.caretPositionFromPoint?.(x, y) ?? document.caretRangeFromPoint?.(x, y) ?? null;
  const [holder, offset] = [found?.offsetNode ?? found?.startContainer, found?.offset ?? found?.startOffset];
  return holder === node ? offset : null;
}
