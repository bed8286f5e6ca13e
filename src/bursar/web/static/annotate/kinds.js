// The widget of a task: the module that the server names for its kind exports it as `widget`, an object with
//
//   start(task, item)                     the initial state of a task
//   read(label, task, item)               the state for a JSON label
//   value(state, task, item)              the JSON label of a state
//   missing(state, task, item, passage)   what is still to do; "" if it can be sent
//   accept(state, label, task, item)      the state with a suggestion accepted
//   summary(state, task, item)            a short summary of the answer, as texts or elements
//   review(label, task, item)             a JSON label for reviewers, as texts or elements
//   keys(task)                            [[key, what it does], …]
//   onText                                whether it draws on the text
//   spans(state)                          the spans that other tasks can link; optional
//   open(panel, context)                  a view: draw(), key(event) -> handled?, focus(), and if it draws
//                                         on the text, mount(root) and unmount()
//
// A state is JSON and never changed in place; a view changes it with `context.set(state, announcement)`.

const widgets = new Map(); // by the path of their module

/** Load the widgets of tasks; call it before `kindOf`. */
export async function loadWidgets(tasks) {
  await Promise.all(tasks.map(async ({ widget }) => widgets.set(widget, (await import(widget)).widget)));
}

export const kindOf = (task) => widgets.get(task.widget);
