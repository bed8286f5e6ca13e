// What cannot be said in passing: an answer that the server would not take, kept until its writer has seen it.

import { button, el, quoted } from "./dom.js";

export class Notices {
  constructor(root) {
    this.root = root;
  }

  /** A notice with what it is about, a text to copy, and a way to take it up again. */
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
        again ? small("Open it again", () => (close(), again())) : null,
        copy ? small("Copy the answer", (event) => this.copy(copy, event.currentTarget)) : null,
        small("Dismiss", close),
      ),
    );
    this.root.append(node);
  }

  /** The clipboard is for pages over https; elsewhere the text is shown, selected. */
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
