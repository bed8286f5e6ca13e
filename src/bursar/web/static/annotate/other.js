// Fallback for kinds of tasks without a widget: the label is typed as JSON. The state is the text.

import { el, shown } from "./dom.js";

export const widget = {
  start: () => "",
  read: (value) => JSON.stringify(value),
  value: (state) => JSON.parse(state),
  review: (label) => [JSON.stringify(label)],
  missing(state) {
    try {
      JSON.parse(state);
      return "";
    } catch {
      return "enter a label as JSON";
    }
  },
  accept: (state, suggested) => JSON.stringify(suggested),
  summary: (state) => [state.slice(0, 40)],
  keys: () => [],
  open(panel, context) {
    const field = el("textarea", {
      class: "json",
      rows: 4,
      spellcheck: "false",
      "aria-label": `${context.task.name}, as JSON`,
      on: { input: () => context.set(field.value, "") },
    });
    const remark = el("p", { class: "remark" });
    const hint = el("p", { class: "hint" }, `Enter labels of kind “${context.task.kind}” as JSON.`);
    panel.append(hint, field, remark);
    return {
      draw() {
        if (field.value !== context.state) field.value = context.state;
        const { suggestion } = context;
        shown(remark, suggestion).textContent = suggestion ? `Suggestion: ${JSON.stringify(suggestion.label)}` : "";
      },
      key: () => false,
      focus: () => field.focus(),
    };
  },
};
