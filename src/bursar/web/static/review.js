// The review page: overlap settings, agreement, disagreements to adjudicate, and skipped items.

import { Api, SignedOut } from "./annotate/api.js";
import { el } from "./annotate/dom.js";
import { kindOf, loadWidgets } from "./annotate/kinds.js";
import { metadataOf } from "./annotate/metadata.js";
import { newKey } from "./annotate/store.js";
import { errorText, showNotice } from "./format.js";
import { showSkips } from "./skips.js";

const api = new Api();
const notice = document.getElementById("notice");
const cases = document.getElementById("cases");
const form = document.getElementById("overlap");
const all = document.getElementById("all");
const more = document.getElementById("more");
const PAGE = 20;

let tasks = new Map();
let decided = 0;

const figure = (value) => (value === null ? "–" : value.toFixed(2));

async function attempt(work) {
  try {
    notice.hidden = true;
    return await work();
  } catch (problem) {
    if (problem instanceof SignedOut) location.assign("/login?next=/review");
    showNotice(notice, errorText(problem), "wrong");
    return null;
  }
}

// -- labels ----------------------------------------------------------------------------------------------------------
function shown(item, task, label) {
  if (label === null || label === undefined) return [el("span", { class: "aside" }, "not answered")];
  return kindOf(task)?.review(label, task, item) ?? [JSON.stringify(label)];
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** The content of an item: its image, or its text and second text; and the other columns of its table. */
function itemParts(item) {
  const beside = [metadataOf(item)].filter(Boolean);
  if (item.kind === "image") return [el("img", { src: item.image, alt: `Item ${item.id}`, loading: "lazy" }), ...beside];
  const second = item.second ? [el("p", { class: "text pair", dir: "auto" }, item.second.text)] : [];
  return [el("p", { class: "text", dir: "auto" }, item.text ?? ""), ...second, ...beside];
}

// -- one item --------------------------------------------------------------------------------------------------------
const taskOf = (name) => tasks.get(name) ?? { kind: "", labels: [] };
const labelsGiven = (item, name, label) => el("span", { class: "labels-given" }, ...shown(item, taskOf(name), label));
const taskPart = (title, ...choices) => el("fieldset", { class: "task" }, el("h3", {}, ...title), el("div", { class: "choices" }, ...choices));

/** A task on which everyone agrees. */
function agreedTask(name, item, label) {
  const choice = el("div", { class: "choice settled" }, el("span", { class: "person" }, "Everyone"), labelsGiven(item, name, label));
  return taskPart([el("bdi", {}, name), el("span", { class: "same" }, "agreed")], choice);
}

/** A task with different answers, to choose from; `current` is the one chosen before, if any. */
function disputedTask(name, item, answers, current, group, choose) {
  const choices = answers.map((answer) => {
    const label = answer.labels[name];
    const radio = el("input", { type: "radio", name: group, checked: answer === current, on: { change: () => choose(name, label) } });
    return el("label", { class: "choice" }, radio, el("span", { class: "person" }, el("bdi", {}, answer.person)), labelsGiven(item, name, label));
  });
  return taskPart([el("bdi", {}, name)], ...choices);
}

/** One item with its answers, and a button to adjudicate it. */
function caseOf({ item, answers, disagree, adjudicated }) {
  const names = [...new Set(answers.flatMap((answer) => Object.keys(answer.labels)))];
  const box = el("article", { class: "card case" });
  const choices = new Map(); // the chosen label by task
  const group = newKey(); // keeps the radio buttons of different items apart
  const choose = (name, label) => {
    choices.set(name, label);
    save.disabled = choices.size < names.length;
  };

  const save = el("button", { class: "button primary", type: "button", disabled: true, on: { click: () => decide() } });
  save.textContent = adjudicated ? "Change decision" : "Use these labels";
  const decide = async () => {
    save.disabled = true;
    const labels = Object.fromEntries(choices);
    const sent = await attempt(() => api.call("POST", "/adjudications", { key: newKey(), item: item.id, labels }));
    if (!sent) {
      save.disabled = false;
      return;
    }
    if (all.checked) return load();
    box.remove();
    decided += 1;
    counted();
  };

  box.append(
    el("div", { class: "top" }, el("span", { class: "mono" }, item.id), adjudicated ? el("span", {}, "adjudicated by ", el("bdi", {}, adjudicated.person)) : null),
    ...itemParts(item),
    ...names.map((name) => {
      if (!disagree.includes(name)) {
        choices.set(name, answers[0].labels[name]);
        return agreedTask(name, item, answers[0].labels[name]);
      }
      const current = answers.find(({ labels }) => adjudicated && same(labels[name], adjudicated.labels[name])) ?? (adjudicated ? answers[0] : null);
      if (current) choices.set(name, current.labels[name]);
      return disputedTask(name, item, answers, current, `${group}-${name}`, choose);
    }),
  );
  if (disagree.length) box.append(el("div", { class: "foot" }, save));
  return box;
}

// -- the page --------------------------------------------------------------------------------------------------------
function counted() {
  const empty = document.getElementById("no-cases");
  empty.hidden = cases.childElementCount > 0;
  empty.textContent = all.checked
    ? "No item has been answered by two people yet."
    : "Nothing to adjudicate.";
}

async function load(offset = 0) {
  const which = all.checked ? "all" : "open";
  const skipped = which === "open" ? offset - decided : offset; // adjudicated items have left the list
  const found = await attempt(() => api.call("GET", `/overlap?which=${which}&limit=${PAGE}&offset=${Math.max(0, skipped)}`));
  if (!found) return;
  if (!offset) {
    cases.replaceChildren();
    decided = 0;
  }
  cases.append(...found.items.map(caseOf));
  more.hidden = offset + found.items.length >= found.total + decided;
  more.onclick = () => load(offset + found.items.length);
  showSettings(found.settings);
  counted();
}

function showSettings({ share, people }) {
  form.share.value = Math.round(100 * share);
  form.people.value = people;
  document.getElementById("overlap-words").textContent = share
    ? `${Math.round(100 * share)} % of the items are answered by ${people} people each.`
    : "Every item is answered by one person.";
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = { share: Number(form.share.value) / 100, people: Number(form.people.value) };
  const set = await attempt(() => api.call("PUT", "/overlap/settings", body));
  if (set) showSettings(set);
});
all.addEventListener("change", () => load());

async function showAgreement() {
  const found = await attempt(() => api.call("GET", "/agreement"));
  if (!found) return;
  const rows = Object.entries(found).filter(([, task]) => task.items);
  document.getElementById("no-agreement").hidden = rows.length > 0;
  document.getElementById("agreement-frame").hidden = rows.length === 0;
  const cell = (label, text) => el("td", { class: "number", "data-label": label }, text);
  document.getElementById("agreement-rows").replaceChildren(
    ...rows.map(([name, task]) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, el("bdi", {}, name)),
        cell("Same answer", task.same === null ? "–" : `${Math.round(100 * task.same)} %`),
        cell("Cohen’s κ", figure(task.cohen)),
        cell("Krippendorff’s α", figure(task.krippendorff)),
        cell("Pairwise F1", figure(task.span_f1)),
        cell("Items", task.items.toLocaleString("en")),
        cell("People", task.people.toLocaleString("en")),
      ),
    ),
  );
}

const me = await attempt(() => api.me());
if (me) {
  await loadWidgets(me.project.tasks);
  tasks = new Map(me.project.tasks.map((task) => [task.name, task]));
  const notify = (text) => showNotice(notice, text, "");
  await Promise.all([load(), showAgreement(), showSkips({ api, attempt, itemParts, notify })]);
}
