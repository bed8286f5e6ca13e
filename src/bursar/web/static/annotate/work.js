// The items of one person: the current one, one fetched ahead, and stored drafts. No DOM here.

import { Refused, Unreachable } from "./api.js";
import { makeDraft, packed, unpacked } from "./draft.js";
import { kindOf } from "./kinds.js";
import { held, newKey } from "./store.js";

const DAY = 24 * 3600 * 1000;
const KEPT = 30 * DAY; // age at which an unused draft is deleted
const FEW = 20; // with fewer items left in the round, none is fetched ahead

/** Items as they are opened: `{ item, tasks, draft, lease, release, progress, round }`. */
export class Work {
  constructor(api, store, me) {
    this.api = api;
    this.store = store;
    this.tasks = new Map(me.project.tasks.map((task) => [task.name, task]));
    this.ahead = null;
    this.open = []; // ids of the leases of this tab
  }

  // -- drafts -------------------------------------------------------------------------------------------------------
  nameOf({ purpose, item }) {
    return `draft/${purpose === "correction" ? "correction" : "answer"}/${encodeURIComponent(item)}`;
  }

  /** Store a draft; returns false if it is only in memory. */
  save(draft) {
    return this.store.put(this.nameOf(draft), packed(draft, Date.now()));
  }

  forget(draft) {
    this.store.drop(this.nameOf(draft));
  }

  lock(item, purpose = "answer") {
    return held(`${this.store.prefix}${purpose === "correction" ? "correction" : "item"}/${item}`);
  }

  known(names) {
    return names.map((name) => this.tasks.get(name)).filter(Boolean);
  }

  /** The stored draft of an item, or a new one. */
  draftOf(item, tasks, fresh) {
    const states = fresh.states ?? Object.fromEntries(tasks.map((task) => [task.name, kindOf(task).start(task, item)]));
    const names = tasks.map((task) => task.name);
    const made = makeDraft({ ...fresh, item: item.id, tasks: names, states, key: newKey() });
    const kept = unpacked(this.store.get(this.nameOf(made)), item.id, names);
    if (!kept || kept.of !== made.of || !fits(kept, item, tasks)) return made;
    return { ...kept, lease: made.lease ?? kept.lease, suggestions: fresh.suggestions ?? kept.suggestions };
  }

  /** Reopen a stored draft that was edited but not sent; null if there is none. */
  async resume() {
    for (const name of this.store.names("draft/")) {
      const kept = this.store.get(name);
      if (!kept?.edited || Date.now() - kept.saved > KEPT) {
        this.store.drop(name);
        continue;
      }
      const release = await this.lock(kept.item, kept.purpose);
      if (!release) continue; // another tab has it
      try {
        const opened = await this.reopen(kept);
        if (opened) return { ...opened, release };
      } catch (problem) {
        release();
        if (problem instanceof Refused) this.store.drop(name); // the item no longer exists
        else throw problem;
        continue;
      }
      release();
      this.store.drop(name);
    }
    return null;
  }

  async reopen(kept) {
    const item = await this.api.item(kept.item);
    const tasks = this.known(kept.tasks);
    const draft = unpacked(kept, item.id, tasks.map((task) => task.name));
    if (!draft || tasks.length !== kept.tasks.length || !fits(draft, item, tasks)) return null;
    const renewed = kept.lease ? await this.renewed(kept.lease) : null;
    const lease = renewed ?? kept.lease;
    return { item, tasks, draft: { ...draft, lease }, lease, lost: Boolean(lease && !renewed), resumed: true };
  }

  // -- leases -------------------------------------------------------------------------------------------------------
  /** The renewed lease, or null if it has been lost. */
  async renewed(lease) {
    try {
      return { ...lease, ...(await this.api.renew(lease.id)) };
    } catch (problem) {
      if (problem instanceof Refused) return null;
      if (problem instanceof Unreachable) return lease;
      throw problem;
    }
  }

  /** The next item, fetched ahead or from the server; or `{ reason, message }`. */
  async next(unsent = []) {
    const { ahead } = this;
    this.ahead = null;
    if (ahead?.lost) this.close(ahead);
    if (!ahead || ahead.lost) return this.fetch(unsent);
    return { ...ahead, progress: null }; // its progress is outdated
  }

  /** Fetch the next item ahead if enough are left, so that it appears at once. Returns the progress of the round. */
  async fetchAhead(unsent, progress) {
    if (this.ahead || !progress || progress.asked - progress.answered < FEW) return progress;
    const found = await this.fetch(unsent).catch(() => null);
    if (!found?.item) return progress;
    this.ahead = found;
    return found.progress;
  }

  /** Get an item from the server that is not open in another tab or unsent. */
  async fetch(unsent) {
    const known = this.open.slice();
    for (let tries = 0; tries < 8; tries += 1) {
      const reply = await this.api.next(known);
      if (!reply.lease) return reply;
      const taken = unsent.includes(reply.item.id) || known.includes(reply.lease.id);
      const release = taken ? null : await this.lock(reply.item.id);
      if (release) {
        this.open.push(reply.lease.id);
        return { ...this.opened(reply), release };
      }
      if (known.includes(reply.lease.id)) break;
      known.push(reply.lease.id);
    }
    return { reason: "elsewhere", retry_after: 5 };
  }

  opened({ item, tasks: names, lease, purpose, suggestions, progress, round }) {
    const tasks = this.known(names);
    const draft = this.draftOf(item, tasks, { lease, purpose, suggestions: sound(suggestions, item, tasks) });
    return { item, tasks, draft, lease, progress, round, resumed: draft.edited };
  }

  /** Open an earlier answer, an entry of `/mine`, for correction. */
  async correction(answer) {
    const release = await this.lock(answer.item, "correction");
    if (!release) return null;
    try {
      const item = await this.api.item(answer.item);
      const tasks = this.known(Object.keys(answer.labels));
      const read = (task) => kindOf(task).read(answer.labels[task.name], task, item);
      const states = Object.fromEntries(tasks.map((task) => [task.name, read(task)]));
      const draft = this.draftOf(item, tasks, { purpose: "correction", of: answer.key, states, suggestions: {} });
      return { item, tasks, draft, lease: null, release, original: states, at: answer.at };
    } catch (problem) {
      release();
      throw problem;
    }
  }

  /** Close an item and release its lock. */
  close({ release, lease }) {
    release?.();
    this.open = this.open.filter((id) => id !== lease?.id);
  }
}

/** Whether the states of a draft are valid for an item. */
function fits(draft, item, tasks) {
  try {
    return tasks.every((task) => {
      const kind = kindOf(task);
      const state = draft.states[task.name];
      kind.summary(state, task, item);
      const words = item.words?.length ?? 0;
      return !Array.isArray(kind.start(task, item)) || state.length === words;
    });
  } catch {
    return false;
  }
}

/** The valid suggestions; broken ones are left out. */
function sound(suggestions, item, tasks) {
  const found = {};
  for (const task of tasks) {
    const suggestion = suggestions?.[task.name];
    if (!suggestion || suggestion.label === null || suggestion.label === undefined) continue;
    try {
      const kind = kindOf(task);
      kind.accept(kind.start(task, item), suggestion.label, task, item);
      found[task.name] = { label: suggestion.label, sure: String(suggestion.sure ?? "") };
    } catch {
      continue;
    }
  }
  return found;
}
