// Classification: one label per item. The state is the label, or null.

import { chip } from "./chips.js";
import { quoted } from "./dom.js";
import { Palette } from "./labels.js";

export const widget = {
  start: () => null,
  read: (value, task) => (task.labels.includes(value) ? value : null),
  value: (state) => state,
  review: (label, task) => [chip(task, label)],
  missing: (state) => (state === null ? "choose a label" : ""),
  accept: (state, suggested) => suggested,
  summary: (state) => (state === null ? [] : [quoted(state)]),
  keys: (task) => [
    [task.labels.length > 1 ? `1 to ${Math.min(9, task.labels.length)}` : "1", "choose a label"],
    ...(task.labels.length > 9 ? [["/ or 0", "find a label by its name"]] : []),
    ["⌫", "clear the label"],
  ],
  open: panel,
};

function panel(root, context) {
  const palette = new Palette({
    labels: context.task.labels,
    name: context.task.name,
    single: true,
    choose: (label) => {
      context.set(label, `${context.task.name}: ${label}`);
      context.done();
    },
    leave: () => palette.focus(),
  });
  root.append(palette.root);
  return {
    draw() {
      const { suggestion, state } = context;
      palette.draw({
        chosen: state === null ? [] : [state],
        suggested: suggestion ? [suggestion.label] : [],
        numbers: context.active,
      });
    },
    key(event) {
      if (event.key === "Backspace" || event.key === "Delete") context.set(null, `${context.task.name}: cleared`);
      else return palette.key(event);
      return true;
    },
    focus: () => palette.focus(),
  };
}
