// Creates elements without parsing markup: content is only ever inserted as text.

import { el, svg } from "../charts/elements.js";

export { el, svg };

/** A button with a class and a click handler. */
export const button = (look, act, attributes, ...children) =>
  el("button", { type: "button", class: look, on: { click: act }, ...attributes }, ...children);

export const kbd = (key) => el("kbd", { "aria-hidden": "true" }, key);

/** Quoted text, isolated so that its direction does not affect its surroundings. */
export const quoted = (text, attributes = {}) => el("bdi", attributes, text);

/** A name that may wrap after punctuation, such as `set_temperature`. */
export function breakable(name) {
  const parts = name.split(/(?<=[_\-./:])/u).flatMap((part, at) => (at ? [el("wbr"), part] : [part]));
  return el("bdi", { class: "name" }, parts);
}

/** Show or hide an element. */
export function shown(node, yes) {
  node.hidden = !yes;
  return node;
}

const HUES = 8;

/** The colour class of a label; there are eight, which repeat. */
export const hueOf = (index) => `hue-${(index % HUES) + 1}`;

/** The key that is meant, on any keyboard layout: Latin lower-case letters, digits without Shift. */
export function strokeOf(event) {
  const { code = "", shiftKey, ctrlKey, metaKey, altKey, target } = event;
  const place = /^(?:Key|Digit)([A-Z0-9])$/.exec(code)?.[1] ?? "";
  const digit = /\d/.test(place) && !shiftKey && !/^[\d/?]$/.test(event.key); // French number rows write é for 2
  const foreign = /[A-Z]/.test(place) && /^\p{L}$/u.test(event.key) && !/^[a-z]$/i.test(event.key);
  const key = digit || foreign ? place : event.key;
  return { key: key.length === 1 ? key.toLowerCase() : key, shiftKey, ctrlKey, metaKey, altKey, target };
}

/** The digit of a key, or null. */
export const digitOf = ({ key }) => (/^[0-9]$/.test(key) ? Number(key) : null);

/** Whether an element takes text input. */
export const isTyping = (target) =>
  target instanceof HTMLTextAreaElement ||
  target instanceof HTMLSelectElement ||
  (target instanceof HTMLInputElement && !["range", "checkbox", "radio", "button"].includes(target.type));

/** "1 word", "2 words". */
export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export const percent = (share) => `${Math.round(100 * share)} %`;
