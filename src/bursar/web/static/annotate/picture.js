// Shows an image, fit to the window, with zoom.

import { button, el } from "./dom.js";

const BROKEN = "The image could not be loaded. Reload the page, or skip the item.";
const STEPS = [1, 1.5, 2, 3, 4, 6, 8, 12];

/** Show an image; `zoom(way)` makes it larger (1), smaller (-1) or fit (0). */
export function showPicture(root, item) {
  let level = 0;
  const image = el("img", {
    class: "picture",
    src: item.image,
    alt: `Item ${item.id}`,
    draggable: "false",
    on: { error: () => root.replaceChildren(el("p", { class: "trouble" }, BROKEN)), load: fit },
  });
  const view = el("div", { class: "viewer", tabindex: 0, role: "group", "aria-label": "Image; + and − zoom" }, image);
  const zoomer = (name, what, way) =>
    button("button quiet", () => zoom(way), { "aria-label": what, title: what }, name);
  const bar = el(
    "div",
    { class: "zoom", role: "group", "aria-label": "Zoom" },
    zoomer("−", "Smaller", -1),
    zoomer("Fit", "Fit to the window", 0),
    zoomer("+", "Larger", 1),
  );
  root.replaceChildren(view, bar);
  const watcher = new ResizeObserver(fit);
  watcher.observe(view);

  /** Scale the image to the view; small images are enlarged with visible pixels. */
  function fit() {
    const width = item.width || image.naturalWidth || 1;
    const height = item.height || image.naturalHeight || 1;
    const scale = Math.min((view.clientWidth - 2) / width, (view.clientHeight - 2) / height) * STEPS[level];
    if (!(scale > 0)) return;
    image.style.width = `${Math.floor(width * scale)}px`;
    image.style.height = `${Math.floor(height * scale)}px`;
    image.classList.toggle("coarse", scale >= 3);
  }

  function zoom(way) {
    level = way === 0 ? 0 : Math.min(STEPS.length - 1, Math.max(0, level + way));
    fit();
  }

  return { zoom, close: () => watcher.disconnect() };
}
