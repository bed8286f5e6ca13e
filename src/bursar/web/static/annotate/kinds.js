// Which module draws which kind of task. All have one contract:
//
//   start(task, item)                     the state of a task before anything was said of it
//   read(label, task, item)               the state that says what a JSON label says
//   value(state, task, item)              the JSON label that a state says
//   missing(state, task, item, passage)   what is still to be done, in words; "" when it can be sent
//   accept(state, label, task, item)      the state with a suggestion taken into it
//   summary(state, task, item)            a few words or elements that say what was answered
//   keys(task)                            [[key, what it does], …]
//   onText                                whether it draws upon the words of the text
//   open(panel, bench)                    a view: draw(), key(event) -> taken?, focus(), and if it draws
//                                         upon the text, mount(root) and unmount()
//
// A state is JSON and never changed in place; a view changes it by `bench.set(state, what was done)`.

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
