// Elements without markup: what people wrote is only ever put in as text.

import { el, svg } from "../charts/elements.js";

export { el, svg };

/** A button of some class that does something. */
export const button = (look, act, attributes, ...children) =>
  el("button", { type: "button", class: look, on: { click: act }, ...attributes }, ...children);

export const kbd = (key) => el("kbd", { "aria-hidden": "true" }, key);

/** A stretch of somebody's text, kept from turning round what stands beside it. */
export const quoted = (text, attributes = {}) => el("bdi", attributes, text);

/** A name that may be broken after its marks: `set_temperature` is wider than many a button. */
export function breakable(name) {
  const parts = name.split(/(?<=[_\-./:])/u).flatMap((part, at) => (at ? [el("wbr"), part] : [part]));
  return el("bdi", { class: "name" }, parts);
}

/** Show or hide, without touching the style. */
export function shown(node, yes) {
  node.hidden = !yes;
  return node;
}

const HUES = 8;

/** The class of a label's colour: eight of them, then again from the first. */
export const hueOf = (index) => `hue-${(index % HUES) + 1}`;

/** A key as it is meant, on any keyboard: letters in Latin and small, digits without Shift. */
export function strokeOf(event) {
  const { code = "", shiftKey, ctrlKey, metaKey, altKey, target } = event;
  const place = /^(?:Key|Digit)([A-Z0-9])$/.exec(code)?.[1] ?? "";
  const digit = /\d/.test(place) && !shiftKey && !/^[\d/?]$/.test(event.key); // French number rows write é for 2
  const foreign = /[A-Z]/.test(place) && /^\p{L}$/u.test(event.key) && !/^[a-z]$/i.test(event.key);
  const key = digit || foreign ? place : event.key;
  return { key: key.length === 1 ? key.toLowerCase() : key, shiftKey, ctrlKey, metaKey, altKey, target };
}

/** The digit of a key; null for every other key. */
export const digitOf = ({ key }) => (/^[0-9]$/.test(key) ? Number(key) : null);

/** Whether keys typed there are text. */
export const isTyping = (target) =>
  target instanceof HTMLTextAreaElement ||
  target instanceof HTMLSelectElement ||
  (target instanceof HTMLInputElement && !["range", "checkbox", "radio", "button"].includes(target.type));

/** "1 word", "2 words". */
export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export const percent = (share) => `${Math.round(100 * share)} %`;
