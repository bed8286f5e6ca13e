// Elements without markup: what people wrote is only ever put in as text.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; `on` has its listeners, an attribute that is null or false is left out. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

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

function filled(node, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [name, listener] of Object.entries(on)) node.addEventListener(name, listener);
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
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
