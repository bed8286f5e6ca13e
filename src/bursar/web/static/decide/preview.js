// The preview of the next round: requests it, shows it, and marks it when it is outdated.

import { sentence } from "../format.js";
import { finishedPreview } from "../preview_job.js";
import { comparison, trust } from "./compare.js";

const node = (id) => document.getElementById(id);

export class Preview {
  constructor(api, events) {
    Object.assign(this, { api, events, asked: 0, shown: null });
    this.items = new Map(); // loaded items by id
    this.usual = node("preview-words").textContent;
  }

  get busy() {
    return !node("preview-progress").hidden;
  }

  /** Request a preview of changes; throws if the server refuses them. */
  async ask(changes, money, state) {
    const turn = (this.asked += 1);
    this.wait(true);
    try {
      const { job } = await this.api.call("POST", "/preview", { changes });
      const onProgress = (share) => (node("preview-progress").value = share);
      const finished = await finishedPreview(this.api, this.events, job, { onProgress, wanted: () => turn === this.asked });
      if (turn !== this.asked || !finished) return;
      const { result, wrong } = finished;
      if (wrong) throw Object.assign(new Error(wrong.error), { fix: wrong.fix, kind: wrong.kind });
      this.shown = { about: JSON.stringify(changes), round: state.round, written: state.written };
      node("preview-words").textContent = trust(result, state);
      node("preview-found").replaceChildren(...comparison(result, Object.keys(changes).length > 0, money, (id) => this.item(id)));
      node("preview-found").hidden = false;
      this.outdated("");
    } finally {
      if (turn === this.asked) this.wait(false);
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
    if (busy) node("preview-words").textContent = "Computing the preview. Nothing is spent.";
  }

  /** Mark the preview if it is outdated. */
  check(changes, state) {
    if (!this.shown || this.busy) return;
    if (this.shown.about !== JSON.stringify(changes)) this.outdated("You have made further edits. Preview again to see their effect.");
    else if (this.shown.round !== state.round) this.outdated("A new round has started. Preview again.");
    else if (this.shown.written !== state.written) this.outdated("There are new answers or changes. Preview again for current numbers.");
    else this.outdated("");
  }

  outdated(words) {
    node("preview-stale").textContent = words;
    node("preview-stale").hidden = !words;
    node("preview-found").classList.toggle("stale", Boolean(words));
  }

  /** Clear the preview and show a message. */
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
