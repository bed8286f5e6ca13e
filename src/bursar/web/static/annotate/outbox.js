// The outbox: answers are stored in the browser before they are sent, in order, each with its own key.

import { Refused, SignedOut, Unreachable } from "./api.js";
import { exclusively } from "./store.js";

const PAUSES = [2, 4, 8, 15, 30]; // seconds before the next try

/** Unsent answers. `hooks.changed()` is called on every change, `hooks.refused(entry)` for refused ones. */
export class Outbox {
  constructor(store, api, hooks) {
    this.store = store;
    this.api = api;
    this.hooks = hooks;
    this.tries = 0;
    this.timer = null;
    this.trouble = null; // the error of the last try
    this.pause = 0; // seconds before the next try
  }

  get waiting() {
    return this.store.names("outbox/").length;
  }

  /** Store a request to be sent: `{ path, body, about }`. */
  add(entry) {
    const last = this.store.names("outbox/").at(-1);
    const number = Math.max(Date.now(), last ? Number(last.split("/")[1]) + 1 : 0);
    const name = `outbox/${String(number).padStart(15, "0")}/${entry.body.key}`;
    this.store.put(name, entry);
    this.hooks.changed();
    return name;
  }

  /** Send all entries, oldest first, in one tab at a time. Returns the outcome of each entry by name. */
  flush() {
    clearTimeout(this.timer);
    return exclusively(`${this.store.prefix}send`, () => this.sendAll());
  }

  async sendAll() {
    const fates = {};
    this.trouble = null;
    for (const name of this.store.names("outbox/")) {
      const entry = this.store.get(name);
      if (!entry) continue;
      try {
        fates[name] = { sent: await this.api.call("POST", entry.path, entry.body) };
        this.store.drop(name);
        this.tries = 0;
      } catch (problem) {
        if (problem instanceof Refused) {
          fates[name] = { refused: this.setAside(name, entry, problem) };
        } else if (problem instanceof Unreachable || problem instanceof SignedOut) {
          this.trouble = problem;
          this.later(problem);
          break;
        } else {
          throw problem;
        }
      }
      this.hooks.changed();
    }
    this.hooks.changed();
    return fates;
  }

  /** Keep a refused entry separately, so that its author can read and copy it. */
  setAside(name, entry, { message, fix, kind, status }) {
    const kept = { ...entry, problem: { message, fix, kind, status } };
    this.store.put(`kept/${name.slice("outbox/".length)}`, kept);
    this.store.drop(name);
    this.hooks.refused(kept);
    return kept;
  }

  later(problem) {
    clearTimeout(this.timer);
    if (problem instanceof SignedOut) return;
    this.pause = problem.pause(PAUSES, this.tries);
    this.tries += 1;
    this.timer = setTimeout(() => this.flush(), 1000 * this.pause);
  }

  kept() {
    return this.store.names("kept/").map((name) => ({ name, ...this.store.get(name) }));
  }

  forget(name) {
    this.store.drop(name);
    this.hooks.changed();
  }
}
