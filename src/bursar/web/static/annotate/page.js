// The annotate page: shows what the session has, and passes on keys and clicks.

import { Api, Refused, SignedOut, Unreachable } from "./api.js";
import { Desk } from "./desk.js";
import { askReason, showKeys } from "./dialogs.js";
import { count, isTyping, shown, strokeOf } from "./dom.js";
import { kindOf } from "./kinds.js";
import { Notices } from "./notices.js";
import { stopAfter } from "./order.js";
import { Session } from "./session.js";
import { Waiting } from "./waiting.js";

const PAUSES = [1, 2, 4, 8, 15]; // seconds between tries to reach the server
const READ_ALOUD = 600; // characters of an item that are announced when it appears
const FORGETFUL = "This browser keeps nothing: an answer that is not sent is lost with the tab.";
const REFUSALS = {
  answered_by_other: "Somebody else answered this item while you had it before you.",
  leased_by_other: "Your hold on this item ran out, and somebody else is annotating it now.",
  not_asked: "Nobody is asked about this item any more.",
};
const place = (id) => document.getElementById(id);
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
const unsavedWords = (number, pause) =>
  `Saving failed: storage is full or unavailable. Your ${number === 1 ? "answer is" : `${number} answers are`} kept in this browser; trying again in ${pause} s.`;
const unsentWords = (number) => `${count(number, "answer")} ${number === 1 ? "waits" : "wait"} to be sent`;

class Page {
  constructor() {
    this.api = new Api();
    this.session = null;
    this.desk = null;
    this.tries = 0;
    this.waiting = new Waiting(place("waiting"), { again: () => this.wake(), back: () => this.goBack() });
    this.notices = new Notices(place("notices"));
    this.listen();
  }

  // -- the server is there, or not ----------------------------------------------------------------------------------
  /** Look whether there is something to do. */
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
    const session = new Session(this.api, await this.api.me(), this);
    for (const entry of session.outbox.kept()) this.showRefusal(entry, session);
    if (!session.store.lasting) this.notices.add({ text: FORGETFUL });
    return session;
  }

  /** Do something that needs the server; where that is gone, say so and try again. */
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
      this.waiting.show("trouble", { message: [problem.message, problem.fix].filter(Boolean).map(sentence).join(" ") });
      if (!(problem instanceof Refused)) console.error(problem);
    }
  }

  later(seconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.wake(), 1000 * seconds);
  }

  // -- what is before the person ------------------------------------------------------------------------------------
  clear() {
    this.desk?.close();
    this.desk = null;
    this.session?.leave();
    this.events?.close();
    clearTimeout(this.timer);
    for (const id of ["bench", "actions", "banner"]) place(id).hidden = true;
  }

  /** There is nothing to do: `{ reason, message, retry_after }`. */
  showNothing({ reason = "none", message, retry_after: after = 10 }) {
    this.clear();
    const links = reason === "ended" && this.session.me.role === "lead" ? [["See what it brought", "/watch"]] : [];
    this.waiting.show(reason, { message, links });
    this.drawStrip();
    this.later(after);
    this.events = this.api.events();
    this.events.addEventListener("stage", (event) => {
      if (reason === "training") this.waiting.progress(JSON.parse(event.data));
    });
    let told = false; // the first state is how things stand already
    this.events.addEventListener("state", (event) => {
      const { phase } = JSON.parse(event.data);
      if (told || (reason === "training" && phase !== "training")) this.later(0.5);
      told = true;
    });
  }

  showItem(opened) {
    this.desk?.close();
    this.events?.close();
    clearTimeout(this.timer);
    this.waiting.hide();
    for (const id of ["bench", "actions"]) place(id).hidden = false;
    place("bench").inert = false;
    this.tell("");
    this.desk = new Desk({ stage: place("stage"), panels: place("panels") }, opened, {
      changed: (draft, task, note) => this.changed(draft, task, note),
      moved: (task) => this.session.moved(task),
      announce: (text) => this.announce(text),
      tell: (text) => this.tell(text),
    });
    this.session.at = this.desk.active;
    this.drawStrip();
    this.drawActions();
    this.drawBanner(opened);
    this.desk.focus();
    const { text = "", words = [], second, image } = opened.item;
    const said = image ? "An image." : text.length > READ_ALOUD ? `A text of ${count(words.length, "word")}.` : text;
    const tasks = `Tasks: ${opened.draft.tasks.join(", ")}.`;
    this.announce([this.session.done, said, second?.text, tasks].filter(Boolean).join(" "));
    this.session.done = "";
  }

  changed(draft, task, note) {
    this.tell("");
    this.desk.draft = this.session.keep(draft, task);
    if (note) this.announce(note);
    this.drawActions();
  }

  /** The server will not take it: tell why, and keep it for whoever wrote it. */
  showRefusal({ body, about, problem, path }, session = this.session) {
    const mine = problem.kind === "answered_before";
    const late = problem.kind === "leased_by_other"; // it can be sent again once the other person has let go
    const mendable = body.labels && (mine || late || [400, 422].includes(problem.status));
    const why = REFUSALS[problem.kind] ?? [problem.message, problem.fix].filter(Boolean).map(sentence).join(" ");
    this.notices.add({
      text: body.labels ? `${why} What you said is kept here.` : `It was not skipped. ${why}`,
      quote: about.text,
      copy: body.labels ? JSON.stringify({ item: body.item, labels: body.labels }, null, 1) : null,
      again: mendable ? () => this.trying(() => session.reopen(body, mine || path === "/corrections")) : null,
      dismissed: () => {
        for (const entry of session.outbox.kept()) if (entry.body.key === body.key) session.outbox.forget(entry.name);
      },
    });
  }

  // -- what people do -----------------------------------------------------------------------------------------------
  get busy() {
    return !this.desk || this.session.sending;
  }

  async send() {
    if (this.busy) return;
    const missing = this.desk.missing();
    if (missing.length) {
      this.tell(`Still to do: ${missing.map(({ task, what }) => `${task}: ${what}`).join("; ")}.`, "warn");
      this.desk.activate(missing[0].task);
      return;
    }
    const labels = this.desk.labels();
    place("bench").inert = true;
    await this.trying(() => this.session.send(labels));
  }

  async skip() {
    const { opened } = this.session ?? {};
    if (this.busy || this.session.correcting) return;
    const reason = await askReason(document.body);
    if (this.session.opened !== opened) return;
    if (reason === null) return this.desk.focus();
    place("bench").inert = true;
    await this.trying(() => this.session.skip(reason));
  }

  async goBack() {
    if (!this.session || this.session.sending) return;
    try {
      await this.session.goBack();
    } catch (problem) {
      if (this.desk) this.tell(sentence(problem.message)); // the item that is open stays
      else this.showTrouble(problem);
    }
  }

  leaveCorrection() {
    if (!this.busy && this.session.correcting) this.trying(() => this.session.leaveCorrection());
  }

  showKeys() {
    const tasks = (this.desk?.tasks ?? []).map((task) => [task.name, kindOf(task).keys(task)]);
    showKeys(document.body, tasks).addEventListener("close", () => this.desk?.focus());
  }

  // -- what is drawn around the item --------------------------------------------------------------------------------
  drawStrip() {
    const { progress } = this.session;
    if (!progress) return;
    const { round, answered, asked, skipped, mine } = progress;
    const all = asked - skipped; // what is skipped leaves the round
    place("round").textContent = round === 0 ? "First items" : `Round ${round}`;
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
    const { draft } = this.desk;
    const { correcting } = this.session;
    const missing = this.desk.missing();
    place("undo").disabled = !draft.past.length;
    place("redo").disabled = !draft.future.length;
    place("send").classList.toggle("primary", !missing.length);
    place("skip").hidden = correcting;
    place("send-name").textContent = correcting ? "Save the change" : "Send";
    place("left").textContent = missing.length ? `To do: ${missing.map(({ task }) => task).join(", ")}` : "";
  }

  drawBanner({ at }) {
    const when = new Date(at ?? NaN);
    const day = () => when.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
    shown(place("banner"), this.session.correcting);
    const said = Number.isNaN(when.valueOf()) ? "before" : `on ${day()}`;
    place("banner-text").textContent = `You sent this ${said}. Change it here.`;
    place("return-name").textContent = this.session.parked ? "Return to your item" : "Go on";
  }

  announce(text) {
    place("spoken").textContent = text;
  }

  tell(text, tone = "") {
    if (!this.desk && text) this.waiting.say(text);
    place("status").textContent = text;
    place("status").dataset.tone = tone;
  }

  // -- keys and clicks ----------------------------------------------------------------------------------------------
  listen() {
    const acts = { send: "send", skip: "skip", back: "goBack", return: "leaveCorrection", "show-keys": "showKeys" };
    for (const [id, act] of Object.entries(acts)) place(id).addEventListener("click", () => this[act]());
    for (const act of ["undo", "redo"]) place(act).addEventListener("click", () => this.desk?.[act]());
    document.addEventListener("keydown", (event) => this.key(event));
    for (const sign of ["keydown", "pointerdown", "pointermove", "wheel", "scroll"]) {
      document.addEventListener(sign, () => this.session?.alive(), { passive: true, capture: true });
    }
    document.addEventListener("visibilitychange", () => {
      this.session?.watched(!document.hidden);
      if (!document.hidden && !this.desk) this.wake();
    });
    window.addEventListener("online", () => (this.desk ? this.session.outbox.flush() : this.wake()));
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
    else if (key === "y" || (key === "z" && shiftKey)) this.desk.redo();
    else if (key === "z") this.desk.undo();
    else return false;
    return true;
  }

  /** Tab goes from task to task, whatever of a task is focused; before the first and after the last it goes on. */
  tabKey({ shiftKey, target }) {
    const stop = stopAfter(target, shiftKey ? -1 : 1, this.desk, place("panels"));
    if (stop?.task !== undefined) this.desk.activate(stop.task);
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
    const atItem = place("bench").contains(target) || target === document.body;
    if (key === " " && target.closest("button, a, summary")) return false; // Space presses what is focused,
    if (key === "Enter" && !atItem) return false; // and so does Enter, but for labels: there it sends
    if (this.desk.key(stroke)) return true;
    const act = {
      Enter: () => this.send(),
      a: () => (shiftKey ? this.desk.acceptAll() : this.desk.acceptActive(target)),
      s: () => this.skip(),
      b: () => this.goBack(),
      j: () => this.desk.step(1),
      k: () => this.desk.step(-1),
      "?": () => this.showKeys(),
      Escape: () => this.leaveCorrection(),
    }[key];
    act?.();
    return Boolean(act);
  }
}

new Page().wake();
