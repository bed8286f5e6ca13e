// The order of Tab: what stands before the tasks, the tasks as they stand on the screen, what stands after them.
// A task is one stop wherever its parts are in the document: the text that it is marked on comes before all panels.

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";

/** Where Tab goes from `target`: `{ task }` or `{ node }`; null where the browser's own order is right. */
export function stopAfter(target, way, desk, panels) {
  const isBefore = (node) => node.compareDocumentPosition(panels) & Node.DOCUMENT_POSITION_FOLLOWING;
  const nodes = [...document.querySelectorAll(FOCUSABLE)]
    .filter((node) => node.tabIndex >= 0 && !node.disabled && node.checkVisibility() && !desk.isPartOfTask(node))
    .map((node) => ({ node }));
  const tasks = desk.tasks.map(({ name }) => ({ task: name }));
  const before = nodes.filter(({ node }) => isBefore(node));
  const stops = [...before, ...tasks, ...nodes.slice(before.length)];
  const inTask = target === document.body || desk.isPartOfTask(target);
  const here = stops.findIndex(({ node, task }) => (inTask ? task === desk.active : node === target));
  const next = here < 0 ? undefined : stops[here + way];
  return next && (inTask || next.task !== undefined) ? next : null;
}
