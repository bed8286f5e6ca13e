// Classification: one label an item. A state is the label, or null.

import { quoted } from "./dom.js";
import { Palette } from "./labels.js";

export const classification = {
  start: () => null,
  read: (value, task) => (task.labels.includes(value) ? value : null),
  value: (state) => state,
  missing: (state) => (state === null ? "choose a label" : ""),
  accept: (state, suggested) => suggested,
  summary: (state) => (state === null ? [] : [quoted(state)]),
  keys: (task) => [
    [task.labels.length > 1 ? `1 to ${Math.min(9, task.labels.length)}` : "1", "choose a label"],
    ...(task.labels.length > 9 ? [["/ or 0", "find a label by its name"]] : []),
    ["⌫", "take the label back"],
  ],
  open: panel,
};

function panel(root, bench) {
  const palette = new Palette({
    labels: bench.task.labels,
    name: bench.task.name,
    single: true,
    choose: (label) => {
      bench.set(label, `${bench.task.name}: ${label}`);
      bench.done();
    },
    leave: () => palette.focus(),
  });
  root.append(palette.root);
  return {
    draw() {
      const { suggestion, state } = bench;
      palette.draw({
        chosen: state === null ? [] : [state],
        suggested: suggestion ? [suggestion.label] : [],
        numbers: bench.active,
      });
    },
    key(event) {
      if (event.key === "Backspace" || event.key === "Delete") bench.set(null, `${bench.task.name}: taken back`);
      else return palette.key(event);
      return true;
    },
    focus: () => palette.focus(),
  };
}
