// A palette of labels: chosen by click, by the keys 1 to 9, or by searching for a name.

import { breakable, digitOf, el, hueOf, kbd, shown } from "./dom.js";

export const NUMBERED = 9; // labels with a number key
let palettes = 0;

/** The labels that match a text: first those that start with it, then those with a word that does, then others. */
export function found(labels, typed) {
  const wanted = typed.trim().toLocaleLowerCase();
  if (!wanted) return labels.map((_, at) => at);
  const rank = (label) => {
    const name = label.toLocaleLowerCase();
    const at = name.indexOf(wanted);
    if (at < 0) return 3;
    return at === 0 ? 0 : /[\p{L}\p{N}]/u.test(name[at - 1]) ? 2 : 1;
  };
  return labels
    .map((label, at) => [rank(label), at])
    .filter(([place]) => place < 3)
    .sort(([a, i], [b, j]) => a - b || i - j)
    .map(([, at]) => at);
}

/**
 * Buttons for labels. `choose(label, byKey, found)` is called with the label, and whether it was chosen by key or search.
 * `leave()` is called when a search is cancelled.
 */
export class Palette {
  constructor({ labels, name, choose, leave = () => {}, single = false }) {
    this.labels = labels;
    this.choose = choose;
    this.leave = leave;
    this.single = single;
    this.id = `palette-${(palettes += 1)}`;
    this.order = labels.map((_, at) => at);
    this.active = -1; // index in the search results
    this.buttons = labels.map((label, at) => this.button(label, at));
    this.list = el(
      "div",
      {
        class: "labels",
        id: this.id,
        role: single ? "radiogroup" : "group",
        "aria-label": name,
        on: { click: (event) => this.clicked(event), keydown: (event) => this.walk(event) },
      },
      this.buttons,
    );
    this.search = labels.length > NUMBERED ? this.searchBox(name) : null;
    this.nothing = el("p", { class: "nothing", hidden: true }, "No matching label.");
    this.root = el("div", { class: "palette" }, this.search?.parentElement, this.list, this.nothing);
    this.rove(0);
  }

  button(label, at) {
    return el(
      "button",
      {
        type: "button",
        class: `label ${hueOf(at)}`,
        id: `${this.id}-${at}`,
        role: this.single ? "radio" : null,
        "aria-checked": this.single ? "false" : null,
        "data-choice": at,
        tabindex: -1,
      },
      el("span", { class: "key", "aria-hidden": "true" }, at < NUMBERED ? String(at + 1) : ""),
      breakable(label),
    );
  }

  searchBox(name) {
    const search = el("input", {
      type: "search",
      class: "search",
      placeholder: `Search ${this.labels.length} labels`,
      role: "combobox",
      autocomplete: "off",
      spellcheck: "false",
      "aria-label": `Search the labels of ${name}`,
      "aria-controls": this.id,
      "aria-expanded": "true",
      on: {
        input: () => this.filter(),
        keydown: (event) => this.searching(event),
        blur: () => this.mark(-1),
      },
    });
    el("div", { class: "finder" }, search, kbd("/"));
    return search;
  }

  /** Show which labels are chosen or suggested, and whether number keys are active. */
  draw({ chosen = [], suggested = [], numbers = true } = {}) {
    this.buttons.forEach((button, at) => {
      const label = this.labels[at];
      const on = chosen.includes(label);
      const ghost = suggested.includes(label);
      button.classList.toggle("on", on);
      button.classList.toggle("ghost", ghost && !on);
      if (this.single) button.setAttribute("aria-checked", String(on));
      else button.setAttribute("aria-pressed", String(on));
    });
    this.root.classList.toggle("numbered", numbers);
    const first = this.labels.indexOf(chosen[0] ?? suggested[0]);
    if (first >= 0 && !this.list.contains(document.activeElement)) this.rove(first);
  }

  /** Handle a key that chooses a label or opens the search; returns whether it did. */
  key(event) {
    const digit = digitOf(event);
    if (this.search && (event.key === "/" || digit === 0)) {
      this.find();
      return true;
    }
    if (!digit || digit > this.labels.length) return false;
    if (this.list.contains(document.activeElement)) this.buttons[digit - 1].focus();
    this.rove(digit - 1);
    this.choose(this.labels[digit - 1], true);
    return true;
  }

  /** Focus the search, or the labels if there is none. */
  find() {
    if (!this.search) return this.focus();
    this.search.value = "";
    this.filter();
    this.search.focus();
  }

  focus() {
    const choice = this.list.querySelector('[tabindex="0"]');
    (choice?.hidden ? this.search : choice)?.focus(); // a search may have hidden it
  }

  clicked(event) {
    const button = event.target.closest("[data-choice]");
    if (!button) return;
    this.rove(Number(button.dataset.choice));
    this.choose(this.labels[button.dataset.choice], false);
  }

  /** Arrow keys move between buttons; Space presses one. */
  walk(event) {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    const jump = { Home: 0, End: this.order.length - 1 }[event.key];
    if ((step === undefined && jump === undefined) || event.shiftKey || event.ctrlKey || event.metaKey) return;
    const here = this.order.indexOf(Number(document.activeElement?.dataset?.choice ?? -1));
    const to = jump ?? (here + step + this.order.length) % this.order.length;
    this.rove(this.order[to]);
    this.buttons[this.order[to]].focus();
    event.preventDefault();
    event.stopPropagation();
  }

  rove(at) {
    this.buttons.forEach((button, place) => (button.tabIndex = place === at ? 0 : -1));
  }

  filter() {
    this.order = found(this.labels, this.search.value);
    const seen = new Set(this.order);
    this.buttons.forEach((button, at) => shown(button, seen.has(at)));
    this.order.forEach((at, place) => (this.buttons[at].style.order = this.search.value.trim() ? place : ""));
    shown(this.nothing, !this.order.length);
    this.mark(this.search.value.trim() && this.order.length ? 0 : -1);
  }

  mark(place) {
    this.list.querySelector(".active")?.classList.remove("active");
    this.active = place;
    const button = this.buttons[this.order[place]];
    button?.classList.add("active");
    button?.scrollIntoView({ block: "nearest" });
    if (button) this.search.setAttribute("aria-activedescendant", button.id);
    else this.search?.removeAttribute("aria-activedescendant");
  }

  searching(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.order.length) {
      const here = this.active < 0 && step < 0 ? 0 : this.active;
      this.mark((here + step + this.order.length) % this.order.length);
    } else if (event.key === "Enter") {
      const label = this.labels[this.order[this.active]];
      if (label === undefined) return;
      this.close();
      this.choose(label, true, true);
    } else if (event.key === "Escape") {
      this.close();
      this.leave();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  close() {
    this.search.value = "";
    this.filter();
  }
}
