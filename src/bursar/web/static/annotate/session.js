// The annotation session of one person: gets items, sends answers, and corrects earlier ones. The page displays it.

import { Clock } from "./clock.js";
import { same } from "./draft.js";
import { kindOf } from "./kinds.js";
import { Outbox } from "./outbox.js";
import { newKey, BrowserStore } from "./store.js";
import { shortened } from "./text.js";
import { Work } from "./work.js";

const LOST = "Your reservation of this item has expired. You can still send your answer unless someone else has taken the item.";
const FULL = "The browser storage is full. Send this answer before you close the tab.";
const now = () => performance.now() / 1000;

/** Manages the `opened` item. Calls `page.showItem`, `showNothing`, `showRefusal` and `showStatus`. */
export class Session {
  constructor(api, me, page) {
    this.api = api;
    this.me = me;
    this.page = page;
    this.store = new BrowserStore(me.project.id, me.name);
    this.outbox = new Outbox(this.store, api, {
      changed: () => page.drawUnsent(),
      refused: (entry) => page.showRefusal(entry),
    });
    this.work = new Work(api, this.store, me);
    this.opened = null; // the current item
    this.parked = null; // the current item while an earlier answer is corrected
    this.back = -1; // position in the earlier answers
    this.progress = null;
    this.sending = false;
    this.sent = null; // promise of the last send
    this.at = null; // the task that time is charged to
    this.done = ""; // what was just done, for screen readers
  }

  get correcting() {
    return this.opened?.draft.purpose === "correction";
  }

  get changed() {
    return !same(this.opened.original, this.opened.draft.states);
  }

  // -- items --------------------------------------------------------------------------------------------------------
  /** Send unsent answers, then continue with the next item. Throws if the server fails. */
  async wake() {
    await this.outbox.flush();
    if (this.outbox.trouble) throw this.outbox.trouble;
    await this.goOn();
  }

  /** Continue with a stored draft, a new item, or the waiting screen. */
  async goOn() {
    const found = (await this.resumed()) ?? (await this.work.next(this.unsent()));
    if (found.item) return this.open(found);
    this.progress = found.progress ?? this.progress;
    this.page.showNothing(found);
  }

  /** A stored draft, if any, with the current progress of the round. */
  async resumed() {
    const opened = await this.work.resume();
    return opened && { ...opened, progress: await this.api.progress().catch(() => null) };
  }

  unsent() {
    return this.store.names("outbox/").map((name) => this.store.get(name)?.body.item);
  }

  /** Show an item. */
  open(opened) {
    this.opened = opened;
    this.progress = opened.progress ?? this.progress;
    opened.clock ??= new Clock(opened.draft.seconds, now());
    opened.clock.resume(now());
    this.at = opened.tasks[0]?.name;
    this.page.showItem(opened);
    if (opened.lost) this.page.showStatus(LOST);
    else if (opened.resumed) this.page.showStatus("Restored your unsent answer.");
    clearTimeout(this.fetching);
    if (!this.correcting) this.fetching = setTimeout(() => this.fetchAhead(), 400);
    this.holdOn();
  }

  /** Close the current item; its draft stays. */
  leave() {
    if (this.opened) this.work.close(this.opened);
    this.opened = null;
    clearInterval(this.holding);
  }

  async fetchAhead() {
    await this.sent;
    const { opened } = this;
    if (this.unsent().length || !opened || this.sending) return;
    const progress = await this.work.fetchAhead([], this.progress);
    if (this.opened !== opened) return;
    this.progress = progress;
    this.page.drawStrip();
  }

  /** The page is closing: release the item fetched ahead, keep the current one. */
  letGo() {
    const { ahead } = this.work;
    if (ahead) {
      this.work.ahead = null;
      this.work.close(ahead);
      this.api.release(ahead.lease.id);
    }
    if (this.opened?.draft.edited) this.work.save({ ...this.opened.draft, seconds: this.opened.clock.total() });
  }

  // -- time and leases ----------------------------------------------------------------------------------------------
  alive() {
    this.seen = now();
    this.opened?.clock.alive(this.seen);
  }

  /** The tab became visible or hidden. */
  watched(yes) {
    if (!yes) return this.opened?.clock.pause(now());
    this.opened?.clock.resume(now());
    if (this.outbox.waiting) this.outbox.flush();
    if (this.opened) this.renew();
  }

  /** Renew leases while the person is active. */
  holdOn() {
    clearInterval(this.holding);
    const lease = this.opened.lease ?? this.parked?.lease;
    if (!lease) return;
    const there = () => !document.hidden && now() - (this.seen ?? 0) < lease.seconds;
    this.holding = setInterval(() => there() && this.renew(), Math.max(5, lease.seconds / 3) * 1000);
  }

  async renew() {
    for (const one of [this.opened, this.parked, this.work.ahead].filter((some) => some?.lease && !some.lost)) {
      const renewed = await this.work.renewed(one.lease).catch(() => one.lease);
      if (renewed) one.lease = renewed;
      else one.lost = true;
      if (one.lost && one === this.opened) this.page.showStatus(LOST);
    }
  }

  /** Charge the time since the last edit to a task, or to reading before the first edit. */
  charge(task) {
    const { clock } = this.opened;
    clock.charge("reading" in clock.seconds ? task : "reading", now());
  }

  moved(task) {
    if (this.opened && "reading" in this.opened.clock.seconds) this.charge(this.at);
    this.at = task;
  }

  /** Store an edited draft with its times; returns it. */
  keep(draft, task) {
    this.charge(task);
    this.at = task;
    this.opened.draft = { ...draft, seconds: this.opened.clock.total() };
    const lasts = this.work.save(this.opened.draft);
    if (!lasts && this.store.kept) this.page.showStatus(FULL);
    return this.opened.draft;
  }

  // -- sending ------------------------------------------------------------------------------------------------------
  /** Send a complete answer. */
  async send(labels) {
    const { draft, item, clock, lease } = this.opened;
    if (this.correcting) {
      if (!this.changed) return this.leaveCorrection("No changes.");
      return this.post("/corrections", { key: draft.key, item: item.id, labels });
    }
    this.charge(this.at);
    const seconds = clock.total();
    return this.post("/answers", { key: draft.key, lease: lease?.id ?? null, item: item.id, labels, seconds });
  }

  skip(reason) {
    const { lease, item } = this.opened;
    return this.post("/skips", { key: newKey(), lease: lease?.id ?? null, item: item.id, reason });
  }

  /** Add to the outbox and send. If the next item was fetched ahead, it is shown without waiting. */
  async post(path, body) {
    const { opened } = this;
    const about = { text: shortened(opened.item.text ?? opened.item.id, 90) };
    this.sending = true;
    const name = this.outbox.add({ path, body, about });
    this.work.forget(opened.draft);
    this.work.close(opened);
    if (this.progress) this.progress = counted(this.progress, path, opened.draft.purpose);
    this.sent = this.outbox.flush();
    try {
      if (path === "/corrections") return await this.leaveCorrection(saved((await this.sent)[name]));
      if (!this.work.ahead) await this.sent;
      this.opened = null;
      this.done = path === "/skips" ? "Skipped." : "Sent.";
      await this.goOn();
    } finally {
      this.sending = false;
    }
  }

  // -- corrections --------------------------------------------------------------------------------------------------
  /** Open the previous answer. */
  async goBack() {
    if (this.correcting && this.changed) return this.page.showStatus("Save this change first, or return to your item.");
    await this.outbox.flush();
    if (this.outbox.trouble) return this.page.showStatus("Earlier answers can be changed when the server is available again.");
    const { answers } = await this.api.mine();
    const answer = answers[this.back + 1];
    const none = answers.length ? "There are no earlier answers." : "You have not sent any answers yet.";
    if (!answer) return this.page.showStatus(none);
    const opened = await this.work.correction(answer);
    if (!opened) return this.page.showStatus("That item is open in another tab.");
    this.back += 1;
    this.openCorrection(opened);
  }

  openCorrection(opened) {
    if (this.correcting) this.work.close(this.opened);
    else this.park();
    this.open(opened);
  }

  park() {
    if (!this.opened || this.parked) return;
    this.opened.clock.pause(now());
    this.parked = this.opened;
  }

  /** Return to the current item, discarding unsaved changes. */
  async leaveCorrection(words = "") {
    if (this.correcting) {
      this.work.forget(this.opened.draft);
      this.work.close(this.opened);
    }
    const { parked } = this;
    [this.back, this.parked, this.opened] = [-1, null, null];
    if (parked) this.open(parked);
    else await this.goOn();
    this.page.showStatus(words);
  }

  /** Reopen a refused answer: as a draft of the item, or as a correction. */
  async reopen({ item, labels }, correction) {
    const before = correction && (await this.api.mine(1000)).answers.find((answer) => answer.item === item);
    const changing = before && (await this.work.correction(before));
    if (changing) return this.openCorrection(withLabels(changing, labels));
    const shown = await this.api.item(item);
    const tasks = this.work.known(Object.keys(labels));
    const draft = this.work.draftOf(shown, tasks, { lease: null, purpose: "answer", suggestions: {} });
    const release = await this.work.lock(item);
    this.park();
    this.open(withLabels({ item: shown, tasks, draft, lease: null, release }, labels));
  }
}

function withLabels(opened, labels) {
  const { item, tasks } = opened;
  const states = Object.fromEntries(tasks.map((task) => [task.name, kindOf(task).read(labels[task.name], task, item)]));
  return { ...opened, draft: { ...opened.draft, states, edited: true } };
}

/** The progress after this request, until the server sends its own count. */
function counted(progress, path, purpose) {
  const { answered, skipped, mine } = progress;
  if (path === "/skips") return { ...progress, skipped: skipped + 1 };
  if (path !== "/answers") return progress;
  return { ...progress, answered: answered + (purpose === "answer" ? 1 : 0), mine: mine + 1 }; // overlap does not count
}

/** The message after a correction, by its outcome. */
function saved(fate) {
  if (fate?.refused) return "";
  return fate ? "Change saved." : "Change not sent yet.";
}
