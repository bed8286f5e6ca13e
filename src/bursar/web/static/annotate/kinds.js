// Selects the module for a kind of task. All modules have the same interface:
//
//   start(task, item)                     the initial state of a task
//   read(label, task, item)               the state for a JSON label
//   value(state, task, item)              the JSON label of a state
//   missing(state, task, item, passage)   what is still to do; "" if it can be sent
//   accept(state, label, task, item)      the state with a suggestion accepted
//   summary(state, task, item)            a short summary of the answer, as texts or elements
//   keys(task)                            [[key, what it does], …]
//   onText                                whether it draws on the text
//   open(panel, context)                    a view: draw(), key(event) -> handled?, focus(), and if it draws
//                                         on the text, mount(root) and unmount()
//
// A state is JSON and never changed in place; a view changes it with `context.set(state, announcement)`.

import { classification } from "./classification.js";
import { other } from "./other.js";
import { parsing } from "./parsing.js";
import { regression } from "./regression.js";
import { relations } from "./relations.js";
import { tagging } from "./tagging.js";
import { tags } from "./tags.js";

const KINDS = { classification, regression, relations, parsing };

export function kindOf(task) {
  if (task.kind === "tagging") return task.every_word ? tags : tagging;
  return KINDS[task.kind] ?? other;
}
