// What stands where the item would be, when there is none: why, what happens meanwhile, and what one can do.

import { button, count, el, kbd, percent } from "./dom.js";

const WORDS = {
  loading: { title: "One moment …", text: "" },
  training: {
    title: "The next round is being prepared",
    text: "A new model is learning from the answers and will choose what to label next. This page goes on by itself.",
  },
  ended: { title: "The campaign has ended", text: "There is nothing left to label. Thank you." },
  all_leased: {
    title: "Others have the last items of this round before them",
    text: "You are given one as soon as it is free. This page looks by itself.",
  },
  none: { title: "There is nothing to label now", text: "This page looks again by itself." },
  failed: { title: "The next round could not be prepared", text: "Whoever leads this project has to look at it." },
  offline: {
    title: "The server cannot be reached",
    text: "Nothing is lost: what you have done is kept in this browser. This page tries again by itself.",
  },
  storage: {
    title: "Storage is full or unavailable",
    text: "Nothing can be saved now, so no item is given out. What you have done is kept in this browser. This page tries again by itself.",
  },
  elsewhere: {
    title: "You have this project open in another tab",
    text: "Go on there, or close that tab and this one takes over.",
  },
  signed_out: { title: "You are signed out", text: "Sign in again to go on. Answers that wait here are sent then." },
  trouble: { title: "Something went wrong", text: "" },
};

const STAGES = { training: "Training the model", scoring: "Reading the pool", selecting: "Choosing what to label" };

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Shows why there is nothing to do. Its buttons look again, or go back to what was sent. */
export class Waiting {
  constructor(root, { again, back }) {
    this.root = root;
    this.title = el("h1", { tabindex: -1 });
    this.text = el("p", {});
    this.stage = el("p", { class: "stage-name", hidden: true });
    this.bar = el("progress", { max: 1, hidden: true });
    this.links = el("p", { class: "links" });
    this.again = button("button", again, {}, "Look again now");
    this.back = button("button", back, {}, "Change what you sent ", kbd("b"));
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
    const unsent = waiting ? `${count(waiting, "answer")} ${waiting === 1 ? "waits" : "wait"} to be sent.` : "";
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

  /** How far the training is: `{ what, done }`, where `done` is a share if it is known. */
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
