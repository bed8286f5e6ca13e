// Notices that stay until dismissed, such as a refused answer.

import { button, el, quoted } from "./dom.js";

export class Notices {
  constructor(root) {
    this.root = root;
  }

  /** Add a notice, optionally with a quote, a text to copy, and an action to reopen the item. */
  add({ text, quote = "", copy = null, again = null, dismissed = () => {} }) {
    const close = () => {
      node.remove();
      dismissed();
    };
    const small = (name, act) => button("button small", act, {}, name);
    const node = el(
      "div",
      { class: "notice-bar", role: "alert" },
      el("p", {}, text, quote ? el("br") : null, quote ? quoted(quote, { class: "quote" }) : null),
      el(
        "div",
        { class: "buttons" },
        again ? small("Reopen", () => (close(), again())) : null,
        copy ? small("Copy answer", (event) => this.copy(copy, event.currentTarget)) : null,
        small("Dismiss", close),
      ),
    );
    this.root.append(node);
  }

  /** Copy to the clipboard, which requires https; otherwise show the text, selected. */
  async copy(text, pressed) {
    try {
      await navigator.clipboard.writeText(text);
      pressed.textContent = "Copied";
    } catch {
      const field = el("textarea", { readonly: true, rows: 6, class: "json" }, text);
      pressed.closest(".notice-bar").append(field);
      field.select();
    }
  }
}
