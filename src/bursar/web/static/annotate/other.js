// A kind of task that this page has no widget for: its label as JSON. A state is what was typed.

import { el, shown } from "./dom.js";

export const other = {
  start: () => "",
  read: (value) => JSON.stringify(value),
  value: (state) => JSON.parse(state),
  missing(state) {
    try {
      JSON.parse(state);
      return "";
    } catch {
      return "write its label as JSON";
    }
  },
  accept: (state, suggested) => JSON.stringify(suggested),
  summary: (state) => [state.slice(0, 40)],
  keys: () => [],
  open(panel, bench) {
    const field = el("textarea", {
      class: "json",
      rows: 4,
      spellcheck: "false",
      "aria-label": `${bench.task.name}, as JSON`,
      on: { input: () => bench.set(field.value, "") },
    });
    const said = el("p", { class: "remark" });
    const hint = el("p", { class: "hint" }, `Labels of kind “${bench.task.kind}” are written as JSON.`);
    panel.append(hint, field, said);
    return {
      draw() {
        if (field.value !== bench.state) field.value = bench.state;
        const { suggestion } = bench;
        shown(said, suggestion).textContent = suggestion ? `The model says ${JSON.stringify(suggestion.label)}` : "";
      },
      key: () => false,
      focus: () => field.focus(),
    };
  },
};
