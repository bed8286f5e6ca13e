// Shows one item: its text or image, a panel for each task, and the draft of the answer.

import { edit, editAll, redo, same, undo } from "./draft.js";
import { button, count, el, kbd, quoted, shown } from "./dom.js";
import { kindOf } from "./kinds.js";
import { metadataOf } from "./metadata.js";
import { showPicture } from "./picture.js";
import { Passage } from "./text.js";

const FOLD_ABOVE = 12; // labels; a task with more is folded while another task is active

/** Shows `{ item, tasks, draft }`. `hooks.changed(draft, task)` is called after every edit, `hooks.moved(task)` on a change of task. */
export class ItemView {
  constructor({ stage, panels }, { item, tasks, draft }, hooks) {
    this.places = { stage, panels };
    this.item = item;
    this.tasks = tasks;
    this.draft = draft;
    this.hooks = hooks;
    this.passage = new Passage(item.text, item.words);
    this.mounted = null; // the task whose marks are drawn on the text
    this.active = tasks[0]?.name ?? null;
    this.panels = new Map(tasks.map((task) => [task.name, this.makePanel(task)]));
    panels.replaceChildren(...[...this.panels.values()].map((panel) => panel.root));
    this.showItem();
    this.onFocus = (event) => this.followFocus(event);
    stage.addEventListener("focusin", this.onFocus);
    panels.addEventListener("focusin", this.onFocus);
    this.activate(this.next() ?? this.active, false);
  }

  close() {
    this.panels.get(this.mounted)?.view.unmount();
    this.picture?.close();
    this.places.stage.removeEventListener("focusin", this.onFocus);
    this.places.panels.removeEventListener("focusin", this.onFocus);
    this.places.stage.replaceChildren();
    this.places.panels.replaceChildren();
  }

  // -- the item -----------------------------------------------------------------------------------------------------
  showItem() {
    const { item } = this;
    const reading = (text) => el("p", { class: "reading", dir: "auto", lang: "" }, text);
    this.textRoot = el("div", { class: "text" });
    const parts = [];
    if (item.image) {
      const place = el("div", { class: "image", on: { click: () => this.focus() } }); // keeps the focus on the task
      this.picture = showPicture(place, item);
      parts.push(place);
    }
    if (item.text) {
      this.textRoot.append(reading(item.text));
      const second = item.second && el("div", { class: "text" }, reading(item.second.text));
      const pair = () => el("div", { class: "pair" }, half("First text", this.textRoot), half("Second text", second));
      parts.push(second ? pair() : this.textRoot);
    } else if (!item.image) {
      parts.push(el("p", { class: "trouble" }, "This item has no text."));
    }
    const beside = metadataOf(item);
    if (beside) parts.push(beside);
    this.places.stage.classList.toggle("with-image", Boolean(item.image));
    this.places.stage.replaceChildren(...parts);
    this.places.stage.scrollTop = 0;
  }

  /** Draw the marks of a task on the text, in place of another task's. */
  mount(name) {
    if (this.mounted === name) return;
    this.panels.get(this.mounted)?.view.unmount();
    this.mounted = name;
    this.panels.get(name).view.mount(this.textRoot);
  }

  // -- panels -------------------------------------------------------------------------------------------------------
  makePanel(task) {
    const kind = kindOf(task);
    const id = `task-${this.tasks.indexOf(task)}`;
    const title = button("title", () => this.activate(task.name), { id }, quoted(task.name));
    const status = el("span", { class: "status" });
    const hint = { title: "Accept the model's suggestion" };
    const sure = el("span", { class: "sure", title: "The model's confidence in its suggestion" });
    const accept = button("accept", () => this.accept(task.name), hint, "Accept ", kbd("a"));
    const summary = el("div", { class: "summary", on: { click: () => this.activate(task.name) } });
    const body = el("div", { class: "body" });
    const root = el(
      "section",
      { class: "task", "data-task": task.name, "data-kind": task.kind, "aria-labelledby": id },
      el("header", {}, el("h2", {}, title), status, sure, accept),
      summary,
      body,
    );
    const panel = { task, kind, root, title, status, sure, accept, summary, body };
    panel.view = kind.open(body, this.contextFor(task));
    return panel;
  }

  /** What a task panel can read and do. */
  contextFor(task) {
    const view = this;
    return {
      task,
      item: this.item,
      passage: this.passage,
      get state() {
        return view.draft.states[task.name];
      },
      get suggestion() {
        return view.draft.suggestions?.[task.name] ?? null;
      },
      get active() {
        return view.active === task.name;
      },
      set: (state, note) => view.set(task.name, state, note),
      announce: (text) => view.hooks.announce(text),
      showStatus: (text) => view.hooks.showStatus(text),
      activate: () => view.activate(task.name, false),
      done: () => view.advance(task.name),
      partnerSpans: (types) => view.spansOf(types),
    };
  }

  /** The spans of another task on this screen whose labels include all these types. */
  spansOf(types) {
    const partner = this.tasks.find((task) => kindOf(task).spans && types.every((type) => task.labels.includes(type)));
    if (!partner) return [];
    return kindOf(partner).spans(this.draft.states[partner.name]).filter(([, , label]) => types.includes(label));
  }

  draw() {
    for (const panel of this.panels.values()) {
      panel.view.draw();
      this.drawHeader(panel);
    }
  }

  drawHeader({ task, kind, root, title, status, sure, accept, summary, body }) {
    const state = this.draft.states[task.name];
    const missing = this.missingOf(task);
    const active = this.active === task.name;
    const folded = !active && (task.labels?.length ?? 0) > FOLD_ABOVE;
    root.classList.toggle("active", active);
    root.classList.toggle("answered", !missing);
    root.classList.toggle("folded", folded);
    title.setAttribute("aria-expanded", String(!folded));
    body.hidden = folded;
    status.textContent = missing ? "" : "✓";
    status.title = missing || "answered";
    status.setAttribute("aria-label", missing ? `to do: ${missing}` : "answered");
    const suggestion = this.draft.suggestions?.[task.name];
    accept.hidden = !this.pending(task);
    shown(sure, !accept.hidden).textContent = suggestion?.sure ?? "";
    summary.hidden = !folded;
    if (!folded) return;
    const ghost = Boolean(missing && suggestion);
    const summaryParts = kind.summary(ghost ? kind.read(suggestion.label, task, this.item) : state, task, this.item);
    summary.classList.toggle("ghost", ghost);
    summary.replaceChildren(...(summaryParts.length ? summaryParts : ["nothing yet"]).flatMap((part) => [part, " "]));
  }

  // -- edits --------------------------------------------------------------------------------------------------------
  set(name, state, note) {
    this.take(edit(this.draft, name, state), name, note);
  }

  take(draft, name, note) {
    if (draft === this.draft) return;
    this.draft = draft;
    this.draw();
    this.hooks.changed(draft, name, note);
  }

  undo() {
    const step = this.draft.past.at(-1)?.[0];
    if (!step) return this.hooks.showStatus("Nothing to undo.");
    this.take(undo(this.draft), step.task, `Undone: ${step.task}`);
    this.activate(step.task);
  }

  redo() {
    const step = this.draft.future[0]?.[0];
    if (!step) return this.hooks.showStatus("Nothing to redo.");
    this.take(redo(this.draft), step.task, `Redone: ${step.task}`);
    this.activate(step.task);
  }

  // -- suggestions --------------------------------------------------------------------------------------------------
  suggested(task) {
    const suggestion = this.draft.suggestions?.[task.name];
    return suggestion ? kindOf(task).accept(this.draft.states[task.name], suggestion.label, task, this.item) : null;
  }

  /** Whether a suggestion would change the answer. */
  pending(task) {
    const state = this.suggested(task);
    return state !== null && !same(state, this.draft.states[task.name]);
  }

  accept(name) {
    const { task } = this.panels.get(name);
    if (!this.pending(task)) return this.hooks.showStatus(`There is no suggestion for ${name}.`);
    this.set(name, this.suggested(task), `${name}: suggestion accepted`);
    this.advance(name);
  }

  acceptActive(target) {
    if (this.hasFocus(target)) this.accept(this.active);
  }

  /** Accept the suggestions of all unanswered tasks. */
  acceptAll() {
    const open = this.tasks.filter((task) => this.missingOf(task) && this.pending(task));
    if (!open.length) return this.hooks.showStatus("There are no suggestions for the unanswered tasks.");
    const states = Object.fromEntries(open.map((task) => [task.name, this.suggested(task)]));
    this.take(editAll(this.draft, states), open.at(-1).name, `${count(open.length, "suggestion")} accepted`);
    this.advance(this.active);
  }

  // -- navigation ---------------------------------------------------------------------------------------------------
  missingOf(task) {
    return kindOf(task).missing(this.draft.states[task.name], task, this.item, this.passage);
  }

  /** What is missing before the answer can be sent: `[{ task, what }]`. */
  missing() {
    return this.tasks.map((task) => ({ task: task.name, what: this.missingOf(task) })).filter(({ what }) => what);
  }

  labels() {
    const value = (task) => kindOf(task).value(this.draft.states[task.name], task, this.item);
    return Object.fromEntries(this.tasks.map((task) => [task.name, value(task)]));
  }

  /** The next unanswered task after this one, wrapping around. */
  next(after = null) {
    const names = this.tasks.map((task) => task.name);
    const start = names.indexOf(after) + 1;
    const open = new Set(this.missing().map(({ task }) => task));
    return [...names.slice(start), ...names.slice(0, start)].find((name) => open.has(name));
  }

  advance(name) {
    if (this.missingOf(this.panels.get(name).task)) return;
    const next = this.next(name);
    if (next) this.activate(next);
    else this.activate(name);
  }

  step(way) {
    const names = this.tasks.map((task) => task.name);
    this.activate(names[(names.indexOf(this.active) + way + names.length) % names.length]);
  }

  activate(name, focus = true) {
    const panel = this.panels.get(name);
    if (!panel) return;
    if (panel.kind.onText) this.mount(name);
    else if (!this.mounted) {
      const marked = this.tasks.find((task) => kindOf(task).onText);
      if (marked) this.mount(marked.name);
    }
    if (this.active !== name) {
      this.active = name;
      this.hooks.moved(name);
    }
    this.draw();
    panel.root.scrollIntoView({ block: "nearest" });
    if (focus) panel.view.focus();
  }

  followFocus(event) {
    const beside = event.target.closest("[data-task]")?.dataset.task;
    const name = this.places.stage.contains(event.target) ? this.mounted : beside;
    if (name && name !== this.active) this.activate(name, false);
  }

  /** Whether an element belongs to a task: to its panel, or to the text while it shows a task's marks. */
  isPartOfTask(node) {
    return this.places.panels.contains(node) || (this.mounted !== null && this.textRoot.contains(node));
  }

  /** Whether keys pressed there are for the active task: inside a task, or with nothing focused. */
  hasFocus(target) {
    return target === document.body || this.isPartOfTask(target);
  }

  /** Handle a key for the active task or the image. */
  key(event) {
    if (this.picture && ["+", "=", "-"].includes(event.key)) {
      this.picture.zoom(event.key === "-" ? -1 : 1);
      return true;
    }
    if (!this.hasFocus(event.target)) return false;
    return this.panels.get(this.active)?.view.key(event) ?? false;
  }

  focus() {
    this.panels.get(this.active)?.view.focus();
  }
}

function half(name, text) {
  return el("section", { class: "half", "aria-label": name }, el("h3", { class: "part" }, name), text);
}
