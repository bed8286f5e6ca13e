// The draft of an answer: the state of every task, and the undo history. Pure functions.

/** A draft: an item, its tasks and their states, and the idempotency key of the answer. */
export function makeDraft({ item, tasks, states, key, lease = null, purpose = "answer", suggestions = {}, of = null }) {
  const made = { key, item, tasks, states, lease, purpose, suggestions, of };
  return { ...made, edited: false, seconds: {}, past: [], future: [] };
}

/** The draft with a new state of one task. Clears the redo history. */
export function edit(draft, task, state) {
  if (same(draft.states[task], state)) return draft;
  const step = { task, before: draft.states[task], after: state };
  return { ...placed(draft, task, state), past: [...draft.past, [step]], future: [], edited: true };
}

/** The draft with new states of several tasks, as one undo step. */
export function editAll(draft, states) {
  const steps = Object.entries(states)
    .filter(([task, state]) => !same(draft.states[task], state))
    .map(([task, state]) => ({ task, before: draft.states[task], after: state }));
  if (!steps.length) return draft;
  const changed = steps.reduce((made, { task, after }) => placed(made, task, after), draft);
  return { ...changed, past: [...draft.past, steps], future: [], edited: true };
}

export function undo(draft) {
  const steps = draft.past.at(-1);
  if (!steps) return draft;
  const changed = steps.reduceRight((made, { task, before }) => placed(made, task, before), draft);
  return { ...changed, past: draft.past.slice(0, -1), future: [steps, ...draft.future] };
}

export function redo(draft) {
  const steps = draft.future[0];
  if (!steps) return draft;
  const changed = steps.reduce((made, { task, after }) => placed(made, task, after), draft);
  return { ...changed, past: [...draft.past, steps], future: draft.future.slice(1) };
}

/** The part of a draft that is stored in the browser: all but the undo history. */
export function packed(draft, saved) {
  const { past, future, ...kept } = draft;
  return { ...kept, saved };
}

/** A stored draft, or null if it does not fit this item and its tasks. */
export function unpacked(kept, item, tasks) {
  const whole =
    kept && kept.item === item && kept.key && kept.states && tasks.every((task) => task in kept.states);
  return whole ? { ...kept, tasks, past: [], future: [] } : null;
}

/** Whether two states are equal. */
export const same = (one, other) => one === other || JSON.stringify(one) === JSON.stringify(other);

const placed = (draft, task, state) => ({ ...draft, states: { ...draft.states, [task]: state } });
