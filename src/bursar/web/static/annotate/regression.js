// Regression: a number an item. A state is the number, what was typed if that is none, or null.

import { el } from "./dom.js";

/** How far one press of an arrow key goes: what the task says, or a power of ten that makes 50 to 500 steps. */
export function stepOf({ low, high, step }) {
  return step > 0 ? step : 10 ** Math.floor(Math.log10((high - low) / 50));
}

/** A number as people of many places write it, or null. */
export function numberOf(typed) {
  const text = String(typed).trim().replace("−", "-").replace(",", ".");
  return /^[-+]?(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : null;
}

/** A number on the task's steps and within its range, without the dust of binary fractions. */
export function rounded(value, task) {
  const step = stepOf(task);
  const digits = Math.max(0, -Math.floor(Math.log10(step)) + 1);
  const near = task.low + Math.round((value - task.low) / step) * step;
  return Number(Math.min(task.high, Math.max(task.low, near)).toFixed(digits));
}

export const regression = {
  start: () => null,
  read: (value) => (typeof value === "number" ? value : null),
  value: (state) => state,
  missing(state, task) {
    if (state === null) return "set a number";
    const fits = typeof state === "number" && state >= task.low && state <= task.high;
    return fits ? "" : `a number from ${task.low} to ${task.high} is needed`;
  },
  accept: (state, suggested, task) => rounded(suggested, task),
  summary: (state) => (state === null ? [] : [String(state)]),
  keys: () => [
    ["← →", "a step down or up; with ⇧ ten steps"],
    ["0 to 9", "type the number"],
    ["⌫", "take the number back"],
  ],
  open: panel,
};

/** A key that was for us is for nobody else. */
function taken(event, yes) {
  if (!yes) return;
  event.preventDefault();
  event.stopPropagation();
}

function panel(root, bench) {
  const { task } = bench;
  const step = stepOf(task);
  const set = (value) => bench.set(value, `${task.name}: ${value}`);
  const slider = el("input", {
    type: "range",
    class: "slider",
    min: task.low,
    max: task.high,
    step,
    "aria-label": task.name,
    on: { input: () => set(rounded(Number(slider.value), task)), keydown: (event) => taken(event, slide(event)) },
  });
  const field = el("input", {
    type: "text",
    inputmode: "decimal",
    class: "amount",
    autocomplete: "off",
    placeholder: "–",
    "aria-label": `${task.name}, as a number from ${task.low} to ${task.high}`,
    on: { input: typed, keydown: (event) => taken(event, leaveField(event)) },
  });
  const mark = el("span", { class: "mark", "aria-hidden": "true", hidden: true });
  const said = el("p", { class: "remark" });
  const ends = [task.low, task.high].map((end) => el("span", {}, String(end)));
  const track = el("div", { class: "track" }, slider, mark, el("div", { class: "ends" }, ends));
  root.append(el("div", { class: "scale" }, track, field), said);

  function typed() {
    const value = numberOf(field.value);
    bench.set(field.value.trim() === "" ? null : (value ?? field.value), `${task.name}: ${field.value}`);
  }

  function leaveField(event) {
    if (event.key === "Escape") slider.focus();
    else if (event.key === "ArrowUp") stepBy(1);
    else if (event.key === "ArrowDown") stepBy(-1);
    else return false;
    return true;
  }

  function stepBy(steps) {
    const from = typeof bench.state === "number" ? bench.state : (task.low + task.high) / 2;
    set(rounded(from + steps * step, task));
  }

  /** The slider's own keys start from its middle, not from an answer; ours do what is written beside them. */
  function slide(event) {
    const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    const end = { Home: task.low, End: task.high }[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || (way === undefined && end === undefined)) return false;
    if (end !== undefined) set(end);
    else stepBy(way * (event.shiftKey ? 10 : 1));
    return true;
  }

  return {
    draw() {
      const { state, suggestion } = bench;
      const number = typeof state === "number" ? state : null;
      slider.value = number ?? (task.low + task.high) / 2;
      slider.classList.toggle("unset", number === null);
      slider.setAttribute("aria-valuetext", number === null ? "not set" : String(number));
      if (document.activeElement !== field || numberOf(field.value) !== number) field.value = state ?? "";
      field.setAttribute("aria-invalid", String(state !== null && regression.missing(state, task) !== ""));
      mark.hidden = !suggestion;
      if (!suggestion) {
        said.textContent = "";
        return;
      }
      mark.style.setProperty("--at", (suggestion.label - task.low) / (task.high - task.low));
      said.textContent = `The model says ${Number(suggestion.label.toPrecision(3))}.`;
    },
    key(event) {
      if (event.key === "Backspace" || event.key === "Delete") bench.set(null, `${task.name}: taken back`);
      else if (/^[0-9.,-]$/.test(event.key)) {
        field.focus();
        field.value = event.key;
        typed();
      } else return slide(event);
      return true;
    },
    focus: () => slider.focus(),
  };
}
