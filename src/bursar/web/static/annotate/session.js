// One person's time at the page: items come, are answered and go; what was sent can be changed. The page shows it.

import { Clock } from "./clock.js";
import { same } from "./draft.js";
import { kindOf } from "./kinds.js";
import { Outbox } from "./outbox.js";
import { newKey, Store } from "./store.js";
import { shortened } from "./text.js";
import { Work } from "./work.js";

const LOST = "Your hold on this item has run out. You can still send it, unless somebody else was quicker.";
const FULL = "This browser's room is full: send this answer before you close the tab.";
const now = () => performance.now() / 1000;

/** What happens to `opened` items. `page` shows them, by `showItem`, `showNothing`, `showRefusal`, `tell`. */
export class Session {
  constructor(api, me, page) {
    this.api = api;
    this.me = me;
    this.page = page;
    this.store = new Store(me.project.id, me.name);
    this.outbox = new Outbox(this.store, api, {
      changed: () => page.drawUnsent(),
      refused: (entry) => page.showRefusal(entry),
    });
    this.work = new Work(api, this.store, me);
    this.opened = null; // what is before the person
    this.parked = null; // an answer that waits while an earlier one is changed
    this.back = -1; // how far one went back in what was sent
    this.progress = null;
    this.sending = false;
    this.sent = null; // the sending under way
    this.at = null; // the task that time is spent on
    this.done = ""; // what has just been done, in a word
  }

  get correcting() {
    return this.opened?.draft.purpose === "correction";
  }

  get changed() {
    return !same(this.opened.original, this.opened.draft.states);
  }

  // -- coming and going ---------------------------------------------------------------------------------------------
  /** Send what waits, then go on with whatever comes next. Fails as the server does. */
  async wake() {
    await this.outbox.flush();
    if (this.outbox.trouble) throw this.outbox.trouble;
    await this.goOn();
  }

  /** Whatever comes next: a draft of an earlier day, a new item, or waiting. */
  async goOn() {
    const found = (await this.resumed()) ?? (await this.work.next(this.unsent()));
    if (found.item) return this.open(found);
    this.progress = found.progress ?? this.progress;
    this.page.showNothing(found);
  }

  /** A draft, opened again. It was not just given, so how far the round is has to be asked for. */
  async resumed() {
    const opened = await this.work.resume();
    return opened && { ...opened, progress: await this.api.progress().catch(() => null) };
  }

  unsent() {
    return this.store.names("outbox/").map((name) => this.store.get(name)?.body.item);
  }

  /** Put an item before the person. */
  open(opened) {
    this.opened = opened;
    this.progress = opened.progress ?? this.progress;
    opened.clock ??= new Clock(opened.draft.seconds, now());
    opened.clock.resume(now());
    this.at = opened.tasks[0]?.name;
    this.page.showItem(opened);
    if (opened.lost) this.page.tell(LOST);
    else if (opened.resumed) this.page.tell("Here is what you had not sent yet.");
    clearTimeout(this.fetching);
    if (!this.correcting) this.fetching = setTimeout(() => this.fetchAhead(), 400);
    this.holdOn();
  }

  /** There is nothing before the person any more, for whatever reason; the draft stays. */
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

  /** The page goes away: an item that was only fetched ahead is given back, the one in work stays ours. */
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

  /** The tab is looked at, or not. */
  watched(yes) {
    if (!yes) return this.opened?.clock.pause(now());
    this.opened?.clock.resume(now());
    if (this.outbox.waiting) this.outbox.flush();
    if (this.opened) this.renew();
  }

  /** Leases are renewed while somebody is there, so that nobody else is given the item. */
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
      if (one.lost && one === this.opened) this.page.tell(LOST);
    }
  }

  /** Time since the last edit was spent on this; before the first edit it was spent on reading. */
  charge(task) {
    const { clock } = this.opened;
    clock.charge("reading" in clock.seconds ? task : "reading", now());
  }

  moved(task) {
    if (this.opened && "reading" in this.opened.clock.seconds) this.charge(this.at);
    this.at = task;
  }

  /** Every edit is kept at once, with the time that it took. Gives the draft as it is kept. */
  keep(draft, task) {
    this.charge(task);
    this.at = task;
    this.opened.draft = { ...draft, seconds: this.opened.clock.total() };
    const lasts = this.work.save(this.opened.draft);
    if (!lasts && this.store.kept) this.page.tell(FULL);
    return this.opened.draft;
  }

  // -- sending ------------------------------------------------------------------------------------------------------
  /** Send an answer that lacks nothing. */
  async send(labels) {
    const { draft, item, clock, lease } = this.opened;
    if (this.correcting) {
      if (!this.changed) return this.leaveCorrection("Nothing was changed.");
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

  /** Into the outbox first, then to the server; the next item does not wait for that if it is there already. */
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

  // -- what was sent before -----------------------------------------------------------------------------------------
  /** Open what was sent before this. */
  async goBack() {
    if (this.correcting && this.changed) return this.page.tell("Save this change first, or return to your item.");
    await this.outbox.flush();
    if (this.outbox.trouble) return this.page.tell("What you sent can be changed as soon as the server is back.");
    const { answers } = await this.api.mine();
    const answer = answers[this.back + 1];
    const none = answers.length ? "There is nothing before this." : "You have not sent anything yet.";
    if (!answer) return this.page.tell(none);
    const opened = await this.work.correction(answer);
    if (!opened) return this.page.tell("That item is being changed in another tab.");
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

  /** Back to the item that one came from; what was changed here and not saved is given up. */
  async leaveCorrection(words = "") {
    if (this.correcting) {
      this.work.forget(this.opened.draft);
      this.work.close(this.opened);
    }
    const { parked } = this;
    [this.back, this.parked, this.opened] = [-1, null, null];
    if (parked) this.open(parked);
    else await this.goOn();
    this.page.tell(words);
  }

  /** Take up what was refused: as a draft of the item, or as a change of what was said before. */
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

/** How far the round is once this is sent; the server's own count follows with the next item. */
function counted(progress, path, purpose) {
  const { answered, skipped, mine } = progress;
  if (path === "/skips") return { ...progress, skipped: skipped + 1 };
  if (path !== "/answers") return progress;
  return { ...progress, answered: answered + (purpose === "answer" ? 1 : 0), mine: mine + 1 }; // not beside another's
}

/** What to say of a change, by what became of it. */
function saved(fate) {
  if (fate?.refused) return "";
  return fate ? "Your change is saved." : "Your change waits to be sent.";
}
