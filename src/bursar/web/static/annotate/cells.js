// Words as cells with a label below each. Of a long text, only the part near the view is rendered.

import { Board } from "./board.js";
import { el } from "./dom.js";

const BLOCK = 150; // words rendered at a time
const AHEAD = "600px"; // distance from the view at which blocks are rendered

/** A board of cells. `hooks.made(words)` is called with newly rendered cells. */
export class CellBoard extends Board {
  fill() {
    this.text.classList.add("cells");
    this.cells = []; // by word; sparse
    const pieces = this.passage.pieces();
    const starts = []; // first piece of every block
    pieces.forEach(({ word }, at) => {
      if (word >= 0 && word % BLOCK === 0) starts.push(at);
    });
    if (starts.length) starts[0] = 0;
    else starts.push(0);
    this.blocks = starts.map((start, at) => ({
      pieces: pieces.slice(start, starts[at + 1]),
      root: el("div", { class: "block waiting", "data-block": at }),
    }));
    this.text.append(...this.blocks.map((block) => block.root));
    this.nearby = new IntersectionObserver(
      (seen) => seen.filter((one) => one.isIntersecting).forEach((one) => this.make(Number(one.target.dataset.block))),
      { rootMargin: AHEAD },
    );
    this.blocks.forEach((block) => this.nearby.observe(block.root));
    this.make(0);
  }

  make(at) {
    const block = this.blocks[at];
    if (!block?.pieces) return;
    const all = document.createDocumentFragment();
    const words = [];
    for (const { text, word } of block.pieces) {
      if (word < 0) {
        all.append(text);
        continue;
      }
      const parts = [el("span", { class: "form" }, text), el("span", { class: "tag" })];
      this.cells[word] = el("span", { class: "word", "data-word": word }, parts);
      words.push(word);
      all.append(this.cells[word]);
    }
    block.pieces = null;
    block.root.append(all);
    block.root.classList.remove("waiting");
    this.nearby.unobserve(block.root);
    this.hooks.made?.(words);
  }

  cell(word) {
    if (!this.cells[word]) this.make(Math.floor(word / BLOCK));
    return this.cells[word];
  }

  boxOf(word) {
    return this.cell(word).getBoundingClientRect();
  }

  wordAt(x, y) {
    const cell = document.elementFromPoint(x, y)?.closest("[data-word]");
    return cell && this.text.contains(cell) ? Number(cell.dataset.word) : -1;
  }

  close() {
    this.nearby.disconnect();
    super.close();
  }
}
