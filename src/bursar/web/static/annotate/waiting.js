// The screen shown when there is no item: the reason, the training progress, and possible actions.

import { button, count, el, kbd, percent } from "./dom.js";

const WORDS = {
  loading: { title: "Loading …", text: "" },
  training: {
    title: "The next round is being prepared",
    text: "A new model is being trained on the answers and will select the next items. This page continues automatically.",
  },
  ended: { title: "The campaign has ended", text: "There is nothing left to annotate. Thank you!" },
  all_leased: {
    title: "Other people are working on the last items of this round",
    text: "You get an item as soon as one is free. This page checks automatically.",
  },
  none: { title: "There is nothing to annotate right now", text: "This page checks again automatically." },
  failed: { title: "The next round could not be prepared", text: "A lead of this project needs to look at it." },
  offline: {
    title: "The server cannot be reached",
    text: "Nothing is lost: your work is kept in this browser. This page tries again automatically.",
  },
  storage: {
    title: "Storage is full or unavailable",
    text: "Nothing can be saved right now, so there are no new items. Your work is kept in this browser. This page tries again automatically.",
  },
  elsewhere: {
    title: "This project is open in another tab",
    text: "Continue there, or close that tab to continue here.",
  },
  signed_out: { title: "You are signed out", text: "Sign in again to continue. Unsent answers are sent then." },
  trouble: { title: "Something went wrong", text: "" },
};

const STAGES = { training: "Training the model", scoring: "Scoring the pool", selecting: "Selecting items" };

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Shows why there is no item. Its buttons check again, or go back to earlier answers. */
export class Waiting {
  constructor(root, { again, back }) {
    this.root = root;
    this.title = el("h1", { tabindex: -1 });
    this.text = el("p", {});
    this.stage = el("p", { class: "stage-name", hidden: true });
    this.bar = el("progress", { max: 1, hidden: true });
    this.links = el("p", { class: "links" });
    this.again = button("button", again, {}, "Check now");
    this.back = button("button", back, {}, "Change an answer ", kbd("b"));
    const parts = [this.title, this.text, this.stage, this.bar, this.links, this.again, " ", this.back];
    root.replaceChildren(el("div", { class: "nothing-now" }, parts));
    this.show("loading");
  }

  show(reason, { message = "", links = [], waiting = 0 } = {}) {
    const words = WORDS[reason] ?? WORDS.trouble;
    const came = this.root.hidden;
    this.root.hidden = false;
    this.root.dataset.reason = reason;
    this.title.textContent = words.title;
    const unsent = waiting ? `${count(waiting, "unsent answer")}.` : "";
    this.say([message || words.text, unsent].filter(Boolean).join(" "));
    this.links.replaceChildren(...links.flatMap(([name, href]) => [el("a", { href, class: "button" }, name), " "]));
    this.again.hidden = ["loading", "signed_out", "ended"].includes(reason);
    this.back.hidden = !["training", "all_leased", "none", "ended"].includes(reason);
    this.stage.hidden = this.bar.hidden = true;
    if (came) this.title.focus({ preventScroll: true });
  }

  say(text) {
    this.text.textContent = text;
  }

  /** Show the training progress: `{ what, done }`, where `done` is a share if known. */
  progress({ what, done }) {
    this.stage.hidden = false;
    this.bar.hidden = false;
    const share = typeof done === "number" && done >= 0 && done <= 1 ? done : null;
    const name = STAGES[what] ?? capital(what ?? "working");
    this.stage.textContent = share === null ? `${name} …` : `${name} · ${percent(share)}`;
    if (share === null) this.bar.removeAttribute("value");
    else this.bar.value = share;
  }

  shows(reason) {
    return !this.root.hidden && this.root.dataset.reason === reason;
  }

  hide() {
    this.root.hidden = true;
  }
}
