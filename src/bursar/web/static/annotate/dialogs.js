// Two dialogs: the reason for a skip, and the keyboard shortcuts.

import { button, digitOf, el, isTyping, kbd, strokeOf } from "./dom.js";

export const REASONS = [
  "It cannot be read or displayed",
  "I do not know the language",
  "None of the labels fits",
  "It contains personal data",
  "I am not sure",
];

const CONSEQUENCES =
  "The item is removed from the round for everyone, and its cost returns to the budget. A lead sees your reason and can undo the skip.";

const KEYS = [
  ["↵", "send and go to the next item"],
  ["Tab", "next task; after the last, Send"],
  ["⇧ Tab", "previous task"],
  ["j, k", "next or previous task, wrapping around"],
  ["a", "accept the suggestion for this task"],
  ["⇧ A", "accept the suggestions for all unanswered tasks"],
  ["s", "skip this item"],
  ["b", "go back to your previous answer"],
  ["Ctrl Z", "undo; with ⇧ redo"],
  ["Esc", "clear the selection"],
  ["?", "show this help"],
];

/** Ask for the reason of a skip; resolves to null if cancelled. */
export function askReason(root) {
  return new Promise((resolve) => {
    const choices = REASONS.map((reason, at) =>
      el(
        "label",
        { class: "reason" },
        el("input", { type: "radio", name: "reason", value: reason }),
        kbd(String(at + 1)),
        el("span", {}, reason),
      ),
    );
    const words = { placeholder: "Details (optional)", "aria-label": "Details of the reason" };
    const text = el("textarea", { rows: 2, maxlength: 1000, ...words });
    const skip = el("button", { type: "submit", class: "button primary" }, "Skip this item");
    const form = el(
      "form",
      { method: "dialog" },
      el("h2", {}, "Skip this item?"),
      el("p", { class: "hint" }, CONSEQUENCES),
      el("fieldset", {}, el("legend", { class: "unseen" }, "Reason"), choices),
      text,
      el("div", { class: "buttons" }, button("button", () => dialog.close(), {}, "Cancel"), skip),
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
    dialog.addEventListener("close", () => resolve(reason || null));
    renew();
    choices[0].querySelector("input").focus();
  });
}

/** Show the shortcuts of the page and of its tasks: `[[task, [[key, what], …]], …]`. */
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
