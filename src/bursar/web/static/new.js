// The start page: a file, what was found out about it, its tasks and budget, and the new project.

import { el } from "./annotate/dom.js";
import { errorText, sentence, showNotice } from "./format.js";

const place = (id) => document.getElementById(id);
const { csrf } = place("main").dataset;
const notice = place("notice");
const form = place("project");
const skipEmpty = place("skip-empty");
const PAUSE = 400; // milliseconds without typing before the cost is asked for
const NO_COLUMN = "";
let found = null; // what was found out about the file
let proposed = ""; // name of the project, until the lead changes it
let asked = 0; // requests for the cost: only the newest is shown

async function call(path, body, headers = { "Content-Type": "application/json" }) {
  const reply = await fetch(`/api${path}`, { method: "POST", headers: { ...headers, "X-CSRF-Token": csrf }, body });
  const said = await reply.json().catch(() => ({ error: "the server cannot be reached" }));
  if (!reply.ok) throw Object.assign(new Error(said.error), { fix: said.fix });
  return said;
}

async function attempt(work) {
  notice.hidden = true;
  try {
    return await work();
  } catch (problem) {
    showNotice(notice, errorText(problem), "wrong");
    notice.scrollIntoView({ block: "nearest" });
    return null;
  }
}

// -- the file --------------------------------------------------------------------------------------------------------
async function take(file) {
  skipEmpty.checked = false;
  const headers = { "Content-Type": "application/octet-stream" };
  const look = await attempt(() => call(`/tables?${new URLSearchParams({ name: file.name })}`, file, headers));
  if (!look) {
    found = null;
    place("found").hidden = form.hidden = true; // else the file before would seem to be this one
    return;
  }
  if (form.name.value === proposed) form.name.value = proposed = file.name.replace(/\.[A-Za-z.]+$/, "").replace(/[^A-Za-z0-9 ._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  show(look);
  if (!place("tasks").childElementCount) addTask();
}

async function lookAgain(text, id) {
  const look = await attempt(() => call("/look", JSON.stringify({ table: found.table, text, id, skip_empty: skipEmpty.checked })));
  if (look) show(look);
}

function show(look) {
  found = look;
  const words = [`${look.items.toLocaleString("en")} ${look.items === 1 ? "item" : "items"}`, ...look.notes];
  place("notes").textContent = sentence(words.join("; "));
  place("found").hidden = form.hidden = false;
  place("columns").tHead.replaceChildren(el("tr", {}, ...look.columns.map(heading)));
  const rows = Math.max(...look.columns.map(({ examples }) => examples.length));
  const row = (at) => el("tr", {}, ...look.columns.map(({ name, examples }) => el("td", { class: name === look.text ? "text-column" : "", dir: "auto" }, examples[at] ?? "")));
  place("columns").tBodies[0].replaceChildren(...Array.from({ length: rows }, (_, at) => row(at)));
  const ids = place("ids");
  ids.replaceChildren(option(NO_COLUMN, "found by themselves, or numbers of rows"), ...look.columns.map(({ name }) => option(name)));
  ids.value = look.id ?? NO_COLUMN;
  ids.parentElement.hidden = skipEmpty.parentElement.hidden = look.columns.length < 2;
  for (const select of form.querySelectorAll("[data-field=column]")) fillColumns(select);
  if (look.problem) showNotice(notice, errorText({ message: look.problem, fix: look.fix }), "wrong");
  form.create.disabled = Boolean(look.problem);
  estimateSoon();
}

const option = (value, name = value) => el("option", { value }, name);

function heading({ name }) {
  const radio = el("input", { type: "radio", name: "text-column", value: name, checked: name === found.text, on: { change: () => lookAgain(name, found.id) } });
  return el("th", { scope: "col" }, el("label", { class: "tick" }, radio, el("bdi", {}, name), name === found.text ? " (text)" : ""));
}

function fillColumns(select) {
  const chosen = select.value;
  const others = found.columns.map(({ name }) => name).filter((name) => name !== found.text && name !== found.id);
  select.replaceChildren(option(NO_COLUMN, "none"), ...others.map((name) => option(name, `from ${name}`)));
  select.value = others.includes(chosen) ? chosen : NO_COLUMN;
  select.parentElement.hidden = !others.length;
}

const input = place("file");
input.addEventListener("change", () => input.files[0] && take(input.files[0]));
place("drop").addEventListener("submit", (event) => event.preventDefault());
skipEmpty.addEventListener("change", () => lookAgain(found.text, found.id));
place("ids").addEventListener("change", (event) => lookAgain(found.text, event.target.value || null));
for (const name of ["dragover", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault(); // a file dropped anywhere is meant for this page
    place("drop").classList.toggle("over", name === "dragover");
    if (name === "drop" && event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });
}
document.addEventListener("dragleave", () => place("drop").classList.remove("over"));

// -- tasks and cost --------------------------------------------------------------------------------------------------
function addTask() {
  const row = place("task").content.cloneNode(true).firstElementChild;
  fillColumns(row.querySelector("[data-field=column]"));
  const labels = row.querySelector("[data-field=labels]");
  row.querySelector("[data-field=kind]").addEventListener("change", (event) => {
    const number = event.target.value === "regression";
    labels.parentElement.firstChild.textContent = number ? "Lowest and highest value " : "Labels, separated by commas ";
    labels.placeholder = number ? "0, 5" : "order, refund, other";
  });
  row.querySelector("[data-remove]").addEventListener("click", () => {
    row.remove();
    estimateSoon();
  });
  place("tasks").append(row);
  row.querySelector("[data-field=name]").focus();
}

const tasks = () =>
  [...place("tasks").children].map((row) => {
    const value = (name) => row.querySelector(`[data-field=${name}]`).value.trim();
    return { name: value("name"), kind: value("kind"), labels: value("labels"), column: value("column") || null };
  });

const wishes = () => ({
  table: found.table,
  text: found.columns.length > 1 ? found.text : null,
  id: found.id,
  skip_empty: skipEmpty.checked,
  tasks: tasks(),
  hourly: Number(form.hourly.value),
  currency: form.currency.value.trim(),
});

let timer = null;
function estimateSoon() {
  clearTimeout(timer);
  timer = setTimeout(estimate, PAUSE);
}

/** Show what labelling everything costs, as far as the tasks are named. */
async function estimate() {
  if (!found) return;
  const wished = wishes();
  const named = wished.tasks.length && wished.tasks.every(({ name, kind, labels, column }) => name && (labels || column || kind === "regression"));
  if (!named || found.problem) return;
  const mine = (asked += 1);
  let words;
  try {
    const { items, shown, total, price } = await call("/cost", JSON.stringify(wished));
    form.budget.max = total;
    const budget = Number(form.budget.value);
    const buys = budget > 0 ? ` ${wished.currency}${budget.toLocaleString("en")} buys about ${Math.min(items, Math.floor(budget / price)).toLocaleString("en")} items.` : "";
    words = `Labelling all ${items.toLocaleString("en")} items costs about ${shown}.${buys}`;
  } catch (problem) {
    words = errorText(problem);
  }
  if (mine === asked) place("cost").textContent = words;
}

place("add").addEventListener("click", addTask);
form.addEventListener("input", estimateSoon);

// -- the project -----------------------------------------------------------------------------------------------------
const pause = (time) => new Promise((wake) => setTimeout(wake, time));

/** Wait until the project is served at this address. */
async function served() {
  for (;;) {
    const reply = await fetch("/api/state", { cache: "no-store" }).catch(() => null);
    if (reply?.ok) return;
    await pause(200);
  }
}

form.noValidate = true; // the server says what is wrong, in the same words as the command line
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  form.create.disabled = true;
  const watching = setInterval(async () => {
    const { progress } = await fetch("/api/creating").then((reply) => reply.json()).catch(() => ({}));
    if (progress && notice.hidden) place("create").textContent = progress;
  }, 1000);
  const body = { ...wishes(), name: form.name.value.trim(), budget: Number(form.budget.value) };
  const created = await attempt(() => call("/projects", JSON.stringify(body)));
  clearInterval(watching);
  place("create").textContent = created ? "Opening the project …" : "Create project";
  if (!created) {
    form.create.disabled = false;
    return;
  }
  await served();
  location.assign(created.page);
});
