// Two small windows: why an item is skipped, and which keys there are.

import { button, digitOf, el, isTyping, kbd, strokeOf } from "./dom.js";

export const REASONS = [
  "It cannot be read or shown",
  "It is not in a language that I know",
  "None of the labels fits",
  "It holds personal data",
  "I am not sure",
];

const WHAT_FOLLOWS =
  "It leaves the round for everybody, and its money goes back to the budget. A lead reads your reason and may ask again.";

const KEYS = [
  ["↵", "send, and take the next item"],
  ["Tab", "to the next task; after the last, to Send"],
  ["⇧ Tab", "to the task before"],
  ["j, k", "to the next task or the one before, round and round"],
  ["a", "accept the suggestion for this task"],
  ["⇧ A", "accept the suggestions for all tasks without an answer"],
  ["s", "skip this item, with a reason"],
  ["b", "back to what you sent before"],
  ["Ctrl Z", "undo; with ⇧ do it again"],
  ["Esc", "let go of what is chosen"],
  ["?", "these keys"],
];

/** Ask for a reason; resolves to it, or to null if the item is not skipped after all. */
export function askReason(root) {
  return new Promise((tell) => {
    const choices = REASONS.map((reason, at) =>
      el(
        "label",
        { class: "reason" },
        el("input", { type: "radio", name: "reason", value: reason }),
        kbd(String(at + 1)),
        el("span", {}, reason),
      ),
    );
    const words = { placeholder: "In your own words (optional)", "aria-label": "Reason in your own words" };
    const text = el("textarea", { rows: 2, maxlength: 1000, ...words });
    const skip = el("button", { type: "submit", class: "button primary" }, "Skip this item");
    const form = el(
      "form",
      { method: "dialog" },
      el("h2", {}, "Skip this item?"),
      el("p", { class: "hint" }, WHAT_FOLLOWS),
      el("fieldset", {}, el("legend", { class: "unseen" }, "Reason"), choices),
      text,
      el("div", { class: "buttons" }, button("button", () => dialog.close(), {}, "Keep it"), skip),
    );
    const dialog = open(root, form, "Skip this item");
    let reason = null;
    const chosen = () => form.querySelector("input:checked")?.value ?? "";
    const renew = () => (skip.disabled = !chosen() && !text.value.trim());
    form.addEventListener("input", renew);
    form.addEventListener("submit", () => {
      reason = [chosen(), text.value.trim()].filter(Boolean).join(": ");
    });
    dialog.addEventListener("keydown", (event) => {
      const digit = digitOf(strokeOf(event));
      if (isTyping(event.target)) {
        if (event.key === "Enter" && !event.shiftKey && !skip.disabled) {
          event.preventDefault();
          form.requestSubmit(skip);
        }
        return;
      }
      if (digit && digit <= REASONS.length) {
        const radio = choices[digit - 1].querySelector("input");
        radio.checked = true;
        radio.focus();
        renew();
        event.preventDefault();
      }
    });
    dialog.addEventListener("close", () => tell(reason || null));
    renew();
    choices[0].querySelector("input").focus();
  });
}

/** The keys of the page and of every kind of task on it: `[[task, [[key, what], …]], …]`. */
export function showKeys(root, tasks) {
  const row = ([key, what]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, what));
  const table = (name, rows) => el("section", {}, el("h3", {}, name), el("dl", { class: "keys" }, rows.map(row)));
  const close = el("button", { type: "submit", class: "button primary" }, "Close");
  const form = el(
    "form",
    { method: "dialog" },
    el("h2", {}, "Keys"),
    el("div", { class: "key-tables" }, table("Everywhere", KEYS), tasks.map(([name, rows]) => table(name, rows))),
    el("div", { class: "buttons" }, close),
  );
  const dialog = open(root, form, "Keys");
  close.focus();
  return dialog;
}

function open(root, content, name) {
  const dialog = el("dialog", { "aria-label": name }, content);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  root.append(dialog);
  dialog.showModal();
  return dialog;
}
