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

function filled(node, { on = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const [name, listener] of Object.entries(on)) node.addEventListener(name, listener);
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}
