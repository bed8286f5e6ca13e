// The annotation page: displays the session, and handles keys and clicks.

import { errorText, sentence } from "../format.js";
import { Api, Refused, SignedOut, Unreachable } from "./api.js";
import { ItemView } from "./item_view.js";
import { askReason, showKeys } from "./dialogs.js";
import { count, isTyping, shown, strokeOf } from "./dom.js";
import { kindOf, loadWidgets } from "./kinds.js";
import { Notices } from "./notices.js";
import { stopAfter } from "./order.js";
import { Session } from "./session.js";
import { Waiting } from "./waiting.js";

const PAUSES = [1, 2, 4, 8, 15]; // seconds between tries to reach the server
const READ_ALOUD = 600; // longest text, in characters, that is announced in full
const NO_STORAGE = "This browser does not store data: unsent answers are lost when you close the tab.";
const REFUSALS = {
  answered_by_other: "Someone else answered this item in the meantime.",
  leased_by_other: "Your reservation expired, and someone else is annotating this item now.",
  not_asked: "This item is no longer open.",
};
const place = (id) => document.getElementById(id);
const unsavedWords = (number, pause) =>
  `Saving failed: storage is full or unavailable. Your ${number === 1 ? "answer is" : `${number} answers are`} kept in this browser. Trying again in ${pause} s.`;
const unsentWords = (number) => count(number, "unsent answer");

class Page {
  constructor() {
    this.api = new Api();
    this.session = null;
    this.itemView = null;
    this.tries = 0;
    this.waiting = new Waiting(place("waiting"), { again: () => this.wake(), back: () => this.goBack() });
    this.notices = new Notices(place("notices"));
    this.listen();
  }

  // -- connection --------------------------------------------------------------------------------------------------
  /** Check whether there is an item to annotate. */
  async wake() {
    if (this.session?.opened || this.waking) return;
    this.waking = true;
    clearTimeout(this.timer);
    await this.trying(async () => {
      this.session ??= await this.begin();
      await this.session.wake();
    });
    this.waking = false;
  }

  async begin() {
    const me = await this.api.me();
    await loadWidgets(me.project.tasks);
    const session = new Session(this.api, me, this);
    for (const entry of session.outbox.kept()) this.showRefusal(entry, session);
    if (!session.store.lasting) this.notices.add({ text: NO_STORAGE });
    return session;
  }

  /** Run something that needs the server; on failure, show why and try again. */
  async trying(act) {
    try {
      await act();
      this.tries = 0;
    } catch (problem) {
      this.showTrouble(problem);
    }
  }

  showTrouble(problem) {
    const waiting = this.session?.outbox.waiting ?? 0;
    this.clear();
    if (problem instanceof SignedOut) {
      this.waiting.show("signed_out", { waiting, links: [["Sign in", "/login?next=/annotate"]] });
    } else if (problem instanceof Unreachable) {
      this.waiting.show(problem.storage ? "storage" : "offline", { waiting });
      this.later(problem.pause(PAUSES, this.tries));
      this.tries += 1;
    } else {
      this.waiting.show("trouble", { message: errorText(problem) });
      if (!(problem instanceof Refused)) console.error(problem);
    }
  }

  later(seconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.wake(), 1000 * seconds);
  }

  // -- current item --------------------------------------------------------------------------------------------------
  clear() {
    this.itemView?.close();
    this.itemView = null;
    this.session?.leave();
    this.events?.close();
    clearTimeout(this.timer);
    for (const id of ["workspace", "actions", "banner"]) place(id).hidden = true;
  }

  /** Show why there is no item: `{ reason, message, retry_after }`. */
  showNothing({ reason = "none", message, retry_after: after = 10 }) {
    this.clear();
    const links = reason === "ended" && this.session.me.role === "lead" ? [["See the results", "/watch"]] : [];
    this.waiting.show(reason, { message, links });
    this.drawStrip();
    this.later(after);
    this.events = this.api.events();
    this.events.addEventListener("stage", (event) => {
      if (reason === "training") this.waiting.progress(JSON.parse(event.data));
    });
    let received = false; // the first state event is the current state
    this.events.addEventListener("state", (event) => {
      const { phase } = JSON.parse(event.data);
      if (received || (reason === "training" && phase !== "training")) this.later(0.5);
      received = true;
    });
  }

  showItem(opened) {
    this.itemView?.close();
    this.events?.close();
    clearTimeout(this.timer);
    this.waiting.hide();
    for (const id of ["workspace", "actions"]) place(id).hidden = false;
    place("workspace").inert = false;
    this.showStatus("");
    this.itemView = new ItemView({ stage: place("stage"), panels: place("panels") }, opened, {
      changed: (draft, task, note) => this.changed(draft, task, note),
      moved: (task) => this.session.moved(task),
      announce: (text) => this.announce(text),
      showStatus: (text) => this.showStatus(text),
    });
    this.session.at = this.itemView.active;
    this.drawStrip();
    this.drawActions();
    this.drawBanner(opened);
    this.itemView.focus();
    const { text = "", words = [], second, image } = opened.item;
    const content = image ? "An image." : text.length > READ_ALOUD ? `A text of ${count(words.length, "word")}.` : text;
    const tasks = `Tasks: ${opened.draft.tasks.join(", ")}.`;
    this.announce([this.session.done, content, second?.text, tasks].filter(Boolean).join(" "));
    this.session.done = "";
  }

  changed(draft, task, note) {
    this.showStatus("");
    this.itemView.draft = this.session.keep(draft, task);
    if (note) this.announce(note);
    this.drawActions();
  }

  /** Show why the server refused a request, and keep the answer. */
  showRefusal({ body, about, problem, path }, session = this.session) {
    const mine = problem.kind === "answered_before";
    const late = problem.kind === "leased_by_other"; // it can be sent again if the other person releases the item
    const mendable = body.labels && (mine || late || [400, 422].includes(problem.status));
    const why = REFUSALS[problem.kind] ?? errorText(problem);
    this.notices.add({
      text: body.labels ? `${why} Your answer is kept here.` : `The item was not skipped. ${why}`,
      quote: about.text,
      copy: body.labels ? JSON.stringify({ item: body.item, labels: body.labels }, null, 1) : null,
      again: mendable ? () => this.trying(() => session.reopen(body, mine || path === "/corrections")) : null,
      dismissed: () => {
        for (const entry of session.outbox.kept()) if (entry.body.key === body.key) session.outbox.forget(entry.name);
      },
    });
  }

  // -- actions ------------------------------------------------------------------------------------------------------
  get busy() {
    return !this.itemView || this.session.sending;
  }

  async send() {
    if (this.busy) return;
    const missing = this.itemView.missing();
    if (missing.length) {
      this.showStatus(`Still missing: ${missing.map(({ task, what }) => `${task}: ${what}`).join("; ")}.`, "warn");
      this.itemView.activate(missing[0].task);
      return;
    }
    const labels = this.itemView.labels();
    place("workspace").inert = true;
    await this.trying(() => this.session.send(labels));
  }

  async skip() {
    const { opened } = this.session ?? {};
    if (this.busy || this.session.correcting) return;
    const reason = await askReason(document.body);
    if (this.session.opened !== opened) return;
    if (reason === null) return this.itemView.focus();
    place("workspace").inert = true;
    await this.trying(() => this.session.skip(reason));
  }

  async goBack() {
    if (!this.session || this.session.sending) return;
    try {
      await this.session.goBack();
    } catch (problem) {
      if (this.itemView) this.showStatus(sentence(problem.message)); // the current item stays
      else this.showTrouble(problem);
    }
  }

  leaveCorrection() {
    if (!this.busy && this.session.correcting) this.trying(() => this.session.leaveCorrection());
  }

  showKeys() {
    const tasks = (this.itemView?.tasks ?? []).map((task) => [task.name, kindOf(task).keys(task)]);
    showKeys(document.body, tasks).addEventListener("close", () => this.itemView?.focus());
  }

  // -- status bars -------------------------------------------------------------------------------------------------
  drawStrip() {
    const { progress } = this.session;
    if (!progress) return;
    const { round, answered, asked, skipped, mine } = progress;
    const all = asked - skipped; // skipped items leave the round
    place("round").textContent = round === 0 ? "Seed items" : `Round ${round}`;
    place("progress-bar").max = all || 1;
    place("progress-bar").value = all ? answered : 1;
    const left = skipped ? `, ${skipped} skipped` : "";
    place("progress").textContent = `${answered} of ${all} answered, ${mine} by you${left}`;
  }

  drawUnsent() {
    const { waiting, trouble, pause } = this.session?.outbox ?? { waiting: 0 };
    const words = trouble?.storage ? unsavedWords(waiting, pause) : unsentWords(waiting);
    shown(place("unsent"), waiting && trouble).textContent = waiting ? words : "";
    for (const reason of ["offline", "storage"]) if (this.waiting.shows(reason)) this.waiting.show(reason, { waiting });
  }

  drawActions() {
    const { draft } = this.itemView;
    const { correcting } = this.session;
    const missing = this.itemView.missing();
    place("undo").disabled = !draft.past.length;
    place("redo").disabled = !draft.future.length;
    place("send").classList.toggle("primary", !missing.length);
    place("skip").hidden = correcting;
    place("send-name").textContent = correcting ? "Save change" : "Send";
    place("left").textContent = missing.length ? `To do: ${missing.map(({ task }) => task).join(", ")}` : "";
  }

  drawBanner({ at }) {
    const when = new Date(at ?? NaN);
    const day = () => when.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
    shown(place("banner"), this.session.correcting);
    const sent = Number.isNaN(when.valueOf()) ? "earlier" : `on ${day()}`;
    place("banner-text").textContent = `You sent this answer ${sent}. You can change it here.`;
    place("return-name").textContent = this.session.parked ? "Return to your item" : "Continue";
  }

  announce(text) {
    place("spoken").textContent = text;
  }

  showStatus(text, tone = "") {
    if (!this.itemView && text) this.waiting.say(text);
    place("status").textContent = text;
    place("status").dataset.tone = tone;
  }

  // -- keys and clicks ----------------------------------------------------------------------------------------------
  listen() {
    const acts = { send: "send", skip: "skip", back: "goBack", return: "leaveCorrection", "show-keys": "showKeys" };
    for (const [id, act] of Object.entries(acts)) place(id).addEventListener("click", () => this[act]());
    for (const act of ["undo", "redo"]) place(act).addEventListener("click", () => this.itemView?.[act]());
    document.addEventListener("keydown", (event) => this.key(event));
    for (const sign of ["keydown", "pointerdown", "pointermove", "wheel", "scroll"]) {
      document.addEventListener(sign, () => this.session?.alive(), { passive: true, capture: true });
    }
    document.addEventListener("visibilitychange", () => {
      this.session?.watched(!document.hidden);
      if (!document.hidden && !this.itemView) this.wake();
    });
    window.addEventListener("online", () => (this.itemView ? this.session.outbox.flush() : this.wake()));
    window.addEventListener("storage", () => this.drawUnsent());
    window.addEventListener("pagehide", () => this.session?.letGo());
  }

  key(event) {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const stroke = strokeOf(event);
    const held = stroke.ctrlKey || stroke.metaKey || stroke.altKey;
    if (this.busy) {
      if (stroke.key === "?" && !held) this.showKeys();
      if (stroke.key === "b" && !held) this.goBack();
      return;
    }
    const taken = held ? this.controlKey(stroke) : stroke.key === "Tab" ? this.tabKey(stroke) : this.plainKey(stroke);
    if (taken) event.preventDefault();
  }

  controlKey({ key, shiftKey, altKey, target }) {
    if (altKey || (isTyping(target) && key !== "Enter")) return false;
    if (key === "Enter") this.send();
    else if (key === "y" || (key === "z" && shiftKey)) this.itemView.redo();
    else if (key === "z") this.itemView.undo();
    else return false;
    return true;
  }

  /** Tab moves between tasks; before the first and after the last, to other elements. */
  tabKey({ shiftKey, target }) {
    const stop = stopAfter(target, shiftKey ? -1 : 1, this.itemView, place("panels"));
    if (stop?.task !== undefined) this.itemView.activate(stop.task);
    else stop?.node.focus();
    return stop !== null;
  }

  plainKey(stroke) {
    const { key, shiftKey, target } = stroke;
    if (isTyping(target)) {
      if (key !== "Enter" || !target.classList.contains("amount")) return false;
      this.send();
      return true;
    }
    const atItem = place("workspace").contains(target) || target === document.body;
    if (key === " " && target.closest("button, a, summary")) return false; // Space presses the focused element,
    if (key === "Enter" && !atItem) return false; // and so does Enter outside the item; inside, it sends
    if (this.itemView.key(stroke)) return true;
    const act = {
      Enter: () => this.send(),
      a: () => (shiftKey ? this.itemView.acceptAll() : this.itemView.acceptActive(target)),
      s: () => this.skip(),
      b: () => this.goBack(),
      j: () => this.itemView.step(1),
      k: () => this.itemView.step(-1),
      "?": () => this.showKeys(),
      Escape: () => this.leaveCorrection(),
    }[key];
    act?.();
    return Boolean(act);
  }
}

new Page().wake();
