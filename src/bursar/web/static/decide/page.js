// Deciding: what is in force, what is written over it, what that would buy, and the change itself.

import { Api, Refused, SignedOut } from "../annotate/api.js";
import { News } from "../watch/news.js";
import { changed as changesMade, changing, namesOf } from "./changes.js";
import { Form } from "./form.js";
import { changesOf, editsOf, fieldOf, mistakesIn, shownSettings } from "./model.js";
import { Preview } from "./preview.js";
import { Money, many, sentence, told } from "./words.js";

const CALM = 3000; // milliseconds between two looks at the settings while people annotate
const api = new Api();
const news = new News(api);
const preview = new Preview(api, news);
const form = new Form(document.getElementById("form"), edited);
const node = (id) => document.getElementById(id);

let me = null;
let tasks = []; // by name
let money = null;
let found = null; // what the server says is in force
let state = null;
let shown = {}; // that, by field
let values = {}; // what stands in the fields
let edit = { changes: {}, list: [] };
let mistakes = new Map(); // by field
let refused = null; // what the server would not take, until something is edited: field and words
let key = null; // of what is about to be sent, so that sending it twice changes it once
const drawn = new Map(); // list to what it shows, as JSON
let asked = 0; // when the settings were last asked for
let waiting = null;

// -- what is in force --------------------------------------------------------------------------------------------------
/** Take up new settings; what the lead wrote stays written over them. */
function take(next, edits) {
  found = next;
  money = new Money(me.project, found.settings.budget.counts);
  shown = shownSettings(found, tasks);
  values = { ...shown, ...Object.fromEntries(Object.entries(edits).filter(([name]) => name in shown)) };
  form.build(found, tasks, money, state);
  draw();
}

/** Ask again, soon or as soon as it is not too often: somebody may have changed something, and seconds are measured. */
function refresh(soon = false) {
  if (waiting && !soon) return;
  clearTimeout(waiting);
  waiting = setTimeout(() => attempt(look), soon ? 0 : Math.max(0, asked + CALM - Date.now()));
}

async function look() {
  waiting = null;
  asked = Date.now();
  const next = await api.call("GET", "/settings");
  const others = next.history.slice(found.history.length);
  if (others.length) {
    take(next, editsOf(shown, values));
    key = null;
    say(meanwhile(others), "");
    return others;
  }
  found = next;
  form.follow(found, state);
  draw(document.activeElement?.dataset?.field);
  return others;
}

function meanwhile(others) {
  const who = [...new Set(others.map(({ by }) => by))];
  const mine = who.length === 1 && who[0] === me.name;
  const words = `${mine ? "You have, elsewhere," : `${who.join(" and ")} ${who.length > 1 ? "have" : "has"}`} changed ${namesOf(others)}.`;
  return edit.list.length ? `${words} What you wrote stays, and is compared with that now.` : words;
}

// -- editing -----------------------------------------------------------------------------------------------------------
/** A field has another value: its own control wrote it, or, where `elsewhere`, something beside it. */
function edited(name, value, elsewhere = false) {
  values[name] = value;
  [refused, key] = [null, null];
  say("");
  draw(elsewhere ? null : name);
}

function draw(typing = null) {
  edit = changesOf(found, tasks, shown, values);
  mistakes = mistakesIn(found, tasks, values, money);
  const wrong = new Map(mistakes);
  if (refused?.field) wrong.set(refused.field, refused.words);
  form.show(values, shown, typing);
  form.wrongs(wrong);
  list("changes", [edit.list, [...mistakes.keys()]], () => changing(edit.list, mistakes, money, takeBack));
  node("no-changes").hidden = edit.list.length > 0;
  node("panel-count").textContent = edit.list.length || "";
  node("refusal").hidden = !refused;
  node("refusal").textContent = refused ? (refused.field ? "That could not be used. What is wrong stands beside its field." : refused.words) : "";
  list("history", found.history, () => changesMade(found.history, me.name, money));
  node("no-history").hidden = found.history.length > 0;
  node("history-frame").hidden = !found.history.length;
  stand();
  preview.check(edit.changes, state);
  keep();
}

/** Fill a list where it is not as it was: what has the focus in it keeps it, and nobody is read the same again. */
function list(id, about, make) {
  const known = JSON.stringify(about);
  if (drawn.get(id) === known) return;
  drawn.set(id, known);
  node(id).replaceChildren(...make());
}

/** Put fields back to what is in force. */
function takeBack(names) {
  for (const name of names) values[name] = shown[name];
  [refused, key] = [null, null];
  draw();
  node("panel-title").focus();
}

function discard() {
  values = { ...shown };
  [refused, key] = [null, null];
  say("");
  draw();
  if (!preview.busy) preview.clear(opening());
  node("panel-title").focus();
}

/** What is written survives a look at another page, in this tab. */
function keep() {
  const edits = Object.entries(editsOf(shown, values)).filter(([, value]) => !Number.isNaN(value));
  if (edits.length) sessionStorage.setItem(place(), JSON.stringify(Object.fromEntries(edits)));
  else sessionStorage.removeItem(place());
}

function kept() {
  try {
    return JSON.parse(sessionStorage.getItem(place()) ?? "{}");
  } catch {
    return {};
  }
}

const place = () => `bursar/${me.project.id}/decide`;

// -- where the campaign stands -----------------------------------------------------------------------------------------
function stand() {
  const { round, phase, answered, asked: wanted, spent } = state;
  const which = round > 0 ? `Round ${round}` : "First, random items";
  const paid = money.byItem ? `${many(spent, "item")} bought` : `${money.units(spent)} spent`;
  text("standing", `${which}: ${answered.toLocaleString("en")} of ${many(wanted, "item is", "items are")} answered, ${paid}.`);
  const words = {
    ended: `The campaign is over: ${state.why}. Give it more rounds or money here, and it goes on${found.simulated ? " with people, where the labels of the corpus answered so far" : ""}.`,
    failed: `The next round could not be prepared: ${state.why}. What you change here is tried with the next training.`,
    training: `Round ${round + 1} is being prepared now. A change that comes before its items are chosen counts for it, a later one for the round after.`,
  }[phase];
  node("state").hidden = !words;
  text("state", words ?? "");
  node("state").classList.toggle("wrong", phase === "failed");
  text("since", edit.list.length ? `Counts from round ${round + 1} on. Items that are open now stay as they are.` : "");
  for (const id of ["use", "discard"]) node(id).disabled = !edit.list.length && !mistakes.size;
  node("preview").disabled = preview.busy || !hasModel();
  if (!preview.shown && !preview.busy && !hasModel()) preview.clear(opening());
}

/** Before the first round is trained there is nobody who could choose. */
const hasModel = () => state.round > 0;
const opening = () => (hasModel() ? preview.usual : "There is no model yet to choose by. Previews begin when the first, random items are answered and round 1 is there. Settings can be changed before that.");

function text(id, words) {
  if (node(id).textContent !== words) node(id).textContent = words;
}

function say(words, look = "good") {
  node("told").hidden = !words;
  node("told").className = `notice ${look}`;
  text("told", words);
}

// -- asking for it -----------------------------------------------------------------------------------------------------
/** Whether everything that was written can be sent; else go to what cannot. */
function ready() {
  if (!mistakes.size) return true;
  form.focus([...form.fields.keys()].find((name) => mistakes.has(name)));
  return false;
}

async function attempt(work) {
  try {
    return await work();
  } catch (problem) {
    await fail(problem);
    return null;
  }
}

/** Say what went wrong where it belongs: beside its field, or over the buttons. */
async function fail(problem) {
  if (problem instanceof SignedOut) return location.assign("/login?next=/decide");
  if (problem.kind === "changed_meanwhile") {
    await attempt(look);
    refused = { field: null, words: "Somebody has changed the settings meanwhile. See what is in force now; if you still want yours, use it again." };
  } else if (problem instanceof Refused || problem.kind) {
    const keys = edit.list.map((one) => one.key);
    const field = fieldOf(problem.message, edit.list, values);
    refused = { field: form.fields.has(field) ? field : null, words: told(problem, keys) };
  } else {
    refused = { field: null, words: "The server cannot be reached. What you wrote is still here: try again." };
  }
  draw();
  if (refused.field) form.focus(refused.field);
}

async function lookAhead() {
  if (!ready() || node("preview").disabled) return;
  refused = null;
  const asking = preview.ask(edit.changes, money, state);
  draw();
  node("preview-title").focus({ preventScroll: true });
  node("preview-part").scrollIntoView({ block: "start" });
  try {
    await asking;
  } catch (problem) {
    const about = problem.kind === "bad_settings" ? fieldOf(problem.message, edit.list, values) : null;
    preview.clear(about || !problem.kind ? preview.usual : told(problem));
    if (about || !problem.kind) await fail(problem);
  }
  draw();
}

async function use() {
  if (!ready() || !edit.list.length) return;
  [refused, key] = [null, key ?? crypto.randomUUID?.() ?? `decide-${Date.now()}-${Math.random().toString(16).slice(2)}`];
  say("");
  node("use").disabled = true;
  const sent = { changes: edit.changes, key, after: found.history.length };
  const next = await attempt(() => api.call("POST", "/settings", sent));
  if (!next) return;
  key = null;
  preview.clear(opening());
  take(next, {});
  say(`Done. It counts from round ${state.round + 1} on.`);
  node("panel-title").focus();
}

node("preview").addEventListener("click", lookAhead);
node("use").addEventListener("click", use);
node("discard").addEventListener("click", discard);
node("form").addEventListener("submit", (event) => event.preventDefault());
node("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.type === "number") lookAhead();
});

// -- news --------------------------------------------------------------------------------------------------------------
news.on("state", (now) => {
  const opened = now.round !== state.round;
  const changed = opened || now.written !== state.written;
  state = { ...state, ...now };
  form.follow(found, state);
  draw(document.activeElement?.dataset?.field);
  if (changed) refresh(opened);
});
news.on("lost", () => text("line", "Connection lost, trying again …"));
news.on("found", (again) => {
  text("line", "");
  if (again) refresh(true);
});

async function begin() {
  me = await api.me();
  tasks = me.project.tasks.map(({ name }) => name);
  const [now, settings] = await Promise.all([api.call("GET", "/state"), api.call("GET", "/settings")]);
  state = now;
  take(settings, kept());
  node("panel").hidden = false;
  news.start();
}

begin().catch((problem) => {
  if (problem instanceof SignedOut) location.assign("/login?next=/decide");
  else node("loading").textContent = `${sentence(problem.message)} Load the page again.`;
});
