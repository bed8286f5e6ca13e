// The Tab order: elements before the tasks, the tasks as shown on the screen, elements after them. A task is one stop,
// even though the text it is marked on comes before all panels in the document.

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";

/** Where Tab goes from `target`: `{ task }` or `{ node }`; null where the browser's own order is right. */
export function stopAfter(target, way, itemView, panels) {
  const isBefore = (node) => node.compareDocumentPosition(panels) & Node.DOCUMENT_POSITION_FOLLOWING;
  const nodes = [...document.querySelectorAll(FOCUSABLE)]
    .filter((node) => node.tabIndex >= 0 && !node.disabled && node.checkVisibility() && !itemView.isPartOfTask(node))
    .map((node) => ({ node }));
  const tasks = itemView.tasks.map(({ name }) => ({ task: name }));
  const before = nodes.filter(({ node }) => isBefore(node));
  const stops = [...before, ...tasks, ...nodes.slice(before.length)];
  const inTask = target === document.body || itemView.isPartOfTask(target);
  const here = stops.findIndex(({ node, task }) => (inTask ? task === itemView.active : node === target));
  const next = here < 0 ? undefined : stops[here + way];
  return next && (inTask || next.task !== undefined) ? next : null;
}
