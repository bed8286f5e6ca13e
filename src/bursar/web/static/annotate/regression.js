// Regression: one number per item. The state is the number, the typed text if it is not a number, or null.

import { el } from "./dom.js";

/** The step of an arrow key: that of the task, or a power of ten that gives 50 to 500 steps. */
export function stepOf({ low, high, step }) {
  return step > 0 ? step : 10 ** Math.floor(Math.log10((high - low) / 50));
}

/** Parse a number with a decimal point or comma; null if it is not one. */
export function numberOf(typed) {
  const text = String(typed).trim().replace("−", "-").replace(",", ".");
  return /^[-+]?(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : null;
}

/** Round to the task's step and range, without floating-point residue. */
export function rounded(value, task) {
  const step = stepOf(task);
  const digits = Math.max(0, -Math.floor(Math.log10(step)) + 1);
  const near = task.low + Math.round((value - task.low) / step) * step;
  return Number(Math.min(task.high, Math.max(task.low, near)).toFixed(digits));
}

export const widget = {
  start: () => null,
  read: (value) => (typeof value === "number" ? value : null),
  value: (state) => state,
  review: (label) => [String(label)],
  missing(state, task) {
    if (state === null) return "enter a number";
    const fits = typeof state === "number" && state >= task.low && state <= task.high;
    return fits ? "" : `enter a number from ${task.low} to ${task.high}`;
  },
  accept: (state, suggested, task) => rounded(suggested, task),
  summary: (state) => (state === null ? [] : [String(state)]),
  keys: () => [
    ["← →", "one step down or up; with ⇧ ten steps"],
    ["0 to 9", "type the number"],
    ["⌫", "clear the number"],
  ],
  open: panel,
};

/** Stop a handled key from reaching other handlers. */
function stopIf(handled, event) {
  if (!handled) return;
  event.preventDefault();
  event.stopPropagation();
}

function panel(root, context) {
  const { task } = context;
  const step = stepOf(task);
  const set = (value) => context.set(value, `${task.name}: ${value}`);
  const slider = el("input", {
    type: "range",
    class: "slider",
    min: task.low,
    max: task.high,
    step,
    "aria-label": task.name,
    on: { input: () => set(rounded(Number(slider.value), task)), keydown: (event) => stopIf(slide(event), event) },
  });
  const field = el("input", {
    type: "text",
    inputmode: "decimal",
    class: "amount",
    autocomplete: "off",
    placeholder: "–",
    "aria-label": `${task.name}, as a number from ${task.low} to ${task.high}`,
    on: { input: typed, keydown: (event) => stopIf(leaveField(event), event) },
  });
  const mark = el("span", { class: "mark", "aria-hidden": "true", hidden: true });
  const remark = el("p", { class: "remark" });
  const ends = [task.low, task.high].map((end) => el("span", {}, String(end)));
  const track = el("div", { class: "track" }, slider, mark, el("div", { class: "ends" }, ends));
  root.append(el("div", { class: "scale" }, track, field), remark);

  function typed() {
    const value = numberOf(field.value);
    context.set(field.value.trim() === "" ? null : (value ?? field.value), `${task.name}: ${field.value}`);
  }

  function leaveField(event) {
    if (event.key === "Escape") slider.focus();
    else if (event.key === "ArrowUp") stepBy(1);
    else if (event.key === "ArrowDown") stepBy(-1);
    else return false;
    return true;
  }

  function stepBy(steps) {
    const from = typeof context.state === "number" ? context.state : (task.low + task.high) / 2;
    set(rounded(from + steps * step, task));
  }

  /** Handles slider keys ourselves: the browser would start from the middle, not from the answer. */
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
      const { state, suggestion } = context;
      const number = typeof state === "number" ? state : null;
      slider.value = number ?? (task.low + task.high) / 2;
      slider.classList.toggle("unset", number === null);
      slider.setAttribute("aria-valuetext", number === null ? "not set" : String(number));
      if (document.activeElement !== field || numberOf(field.value) !== number) field.value = state ?? "";
      field.setAttribute("aria-invalid", String(state !== null && widget.missing(state, task) !== ""));
      mark.hidden = !suggestion;
      if (!suggestion) {
        remark.textContent = "";
        return;
      }
      mark.style.setProperty("--at", (suggestion.label - task.low) / (task.high - task.low));
      remark.textContent = `Suggestion: ${Number(suggestion.label.toPrecision(3))}`;
    },
    key(event) {
      if (event.key === "Backspace" || event.key === "Delete") context.set(null, `${task.name}: cleared`);
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
