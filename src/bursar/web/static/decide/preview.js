// What the next round would buy: asked for, waited for, shown, and marked when it no longer holds.

import { comparison, trust } from "./compare.js";
import { sentence } from "./words.js";

const PATIENCE = 1500; // milliseconds between two looks, should the server's word be lost
const node = (id) => document.getElementById(id);

export class Preview {
  constructor(api, news) {
    Object.assign(this, { api, news, asked: 0, shown: null });
    this.items = new Map(); // by id, so that none is asked for twice
    this.usual = node("preview-words").textContent;
  }

  get busy() {
    return !node("preview-progress").hidden;
  }

  /** Ask what changes would buy; a refusal is thrown as the server worded it. */
  async ask(changes, money, state) {
    const turn = (this.asked += 1);
    this.wait(true);
    try {
      const { job } = await this.api.call("POST", "/preview", { changes });
      const result = await this.found(job, () => turn === this.asked);
      if (turn !== this.asked || !result) return;
      this.shown = { about: JSON.stringify(changes), round: state.round, written: state.written };
      node("preview-words").textContent = trust(result, state);
      node("preview-found").replaceChildren(...comparison(result, Object.keys(changes).length > 0, money, (id) => this.item(id)));
      node("preview-found").hidden = false;
      this.outdated("");
    } finally {
      if (turn === this.asked) this.wait(false);
    }
  }

  /** Wait until a preview is done: the server says so, and where its word is lost, asking finds out. */
  async found(job, wanted) {
    let wake = () => {};
    const told = (event) => event.job === job && wake();
    this.news.on("preview", told);
    try {
      while (wanted()) {
        const now = await this.api.call("GET", `/preview/${job}`);
        if (now.wrong) throw Object.assign(new Error(now.wrong.error), { fix: now.wrong.fix, kind: now.wrong.kind });
        if (now.done) return now.result;
        if (now.progress > 0) node("preview-progress").value = now.progress;
        await new Promise((go) => {
          wake = go;
          setTimeout(go, PATIENCE);
        });
      }
      return null;
    } finally {
      this.news.off("preview", told);
    }
  }

  item(id) {
    if (!this.items.has(id)) this.items.set(id, this.api.item(id));
    return this.items.get(id);
  }

  wait(busy) {
    node("preview-progress").hidden = !busy;
    node("preview-progress").removeAttribute("value");
    node("preview-found").classList.toggle("waiting", busy);
    if (busy) node("preview-words").textContent = "Choosing as the next round would. Nothing is spent.";
  }

  /** Say where what is shown no longer holds. */
  check(changes, state) {
    if (!this.shown || this.busy) return;
    if (this.shown.about !== JSON.stringify(changes)) this.outdated("You have changed something since: preview again to see what it does.");
    else if (this.shown.round !== state.round) this.outdated("Another round was opened since: preview again.");
    else if (this.shown.written !== state.written) this.outdated("Answers or changes came in since: preview again for the newest numbers.");
    else this.outdated("");
  }

  outdated(words) {
    node("preview-stale").textContent = words;
    node("preview-stale").hidden = !words;
    node("preview-found").classList.toggle("stale", Boolean(words));
  }

  /** Show nothing; say why there is nothing, or what to do. */
  clear(words = this.usual) {
    this.asked += 1;
    this.shown = null;
    this.wait(false);
    this.outdated("");
    node("preview-found").hidden = true;
    node("preview-found").replaceChildren();
    if (node("preview-words").textContent !== sentence(words)) node("preview-words").textContent = sentence(words);
  }
}
