// The decide page: edit settings, preview the next round, and apply changes.

import { Api, Refused, SignedOut } from "../annotate/api.js";
import { count as many } from "../annotate/dom.js";
import { newKey } from "../annotate/store.js";
import { sentence, showNotice } from "../format.js";
import { EventStream } from "../watch/event_stream.js";
import { changed as changesMade, changing, namesOf } from "./changes.js";
import { Form } from "./form.js";
import { changesOf, editsOf, fieldOf, mistakesIn, shownSettings } from "./model.js";
import { Preview } from "./preview.js";
import { Money, settingError } from "./words.js";

const PAUSE = 3000; // milliseconds between two requests for the settings while people annotate
const api = new Api();
const events = new EventStream(api);
const preview = new Preview(api, events);
const form = new Form(document.getElementById("form"), edited);
const node = (id) => document.getElementById(id);

let me = null;
let tasks = []; // by name
let money = null;
let found = null; // current settings from the server
let state = null;
let shown = {}; // current settings by field
let values = {}; // edited values by field
let edit = { changes: {}, list: [] };
let mistakes = new Map(); // by field
let refused = null; // error of the server, until the next edit: field and words
let key = null; // idempotency key of the next request
const drawn = new Map(); // content of each list, as JSON
let asked = 0; // time of the last request for the settings
let waiting = null;

// -- current settings --------------------------------------------------------------------------------------------------
/** Apply new settings from the server, keeping the edits. */
function take(next, edits) {
  found = next;
  money = new Money(me.project, found.settings.budget.counts);
  shown = shownSettings(found, tasks);
  values = { ...shown, ...Object.fromEntries(Object.entries(edits).filter(([name]) => name in shown)) };
  form.build(found, tasks, money, state);
  draw();
}

/** Request the settings again, now or after a pause: other leads may have changed them. */
function refresh(soon = false) {
  if (waiting && !soon) return;
  clearTimeout(waiting);
  waiting = setTimeout(() => attempt(look), soon ? 0 : Math.max(0, asked + PAUSE - Date.now()));
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
  const words = `${mine ? "You have changed" : `${who.join(" and ")} ${who.length > 1 ? "have" : "has"} changed`} ${namesOf(others)}${mine ? " in another window" : ""}.`;
  return edit.list.length ? `${words} Your edits are kept and compared with the new settings.` : words;
}

// -- editing -----------------------------------------------------------------------------------------------------------
/** A field was edited: by its own control or, with `elsewhere`, by another one. */
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
  list("changes", [edit.list, [...mistakes.keys()]], () => changing(edit.list, mistakes, money, reset));
  node("no-changes").hidden = edit.list.length > 0;
  node("panel-count").textContent = edit.list.length || "";
  node("refusal").hidden = !refused;
  node("refusal").textContent = refused ? (refused.field ? "The change was refused. See the error next to the field." : refused.words) : "";
  list("history", found.history, () => changesMade(found.history, me.name, money));
  node("no-history").hidden = found.history.length > 0;
  node("history-frame").hidden = !found.history.length;
  stand();
  preview.check(edit.changes, state);
  keep();
}

/** Update a list only if it has changed, to keep the focus and avoid repeated announcements. */
function list(id, about, make) {
  const known = JSON.stringify(about);
  if (drawn.get(id) === known) return;
  drawn.set(id, known);
  node(id).replaceChildren(...make());
}

/** Reset fields to the current settings. */
function reset(names) {
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

/** Keep edits in this tab while other pages are open. */
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

// -- campaign state ----------------------------------------------------------------------------------------------------
function stand() {
  const { round, phase, answered, asked: wanted, spent } = state;
  const which = round > 0 ? `Round ${round}` : "Seed items";
  const paid = money.byItem ? `${many(spent, "item")} bought` : `${money.units(spent)} spent`;
  text("standing", `${which}: ${answered.toLocaleString("en")} of ${many(wanted, "item")} answered, ${paid}.`);
  const words = {
    ended: `The campaign has ended: ${state.why}. To continue, raise the budget or the rounds here.${found.simulated ? " People will answer instead of the labels of the corpus." : ""}`,
    failed: `The next round could not be prepared: ${state.why}. Changes apply to the next try.`,
    training: `Round ${round + 1} is being prepared. Changes apply to it if its items are not selected yet, otherwise to the following round.`,
  }[phase];
  node("state").hidden = !words;
  text("state", words ?? "");
  node("state").classList.toggle("wrong", phase === "failed");
  text("since", edit.list.length ? `Applies from round ${round + 1} on. Open items are not affected.` : "");
  for (const id of ["use", "discard"]) node(id).disabled = !edit.list.length && !mistakes.size;
  node("preview").disabled = preview.busy || !hasModel();
  if (!preview.shown && !preview.busy && !hasModel()) preview.clear(opening());
}

/** Before the first training, there is no model to select items. */
const hasModel = () => state.round > 0;
const opening = () => (hasModel() ? preview.usual : "There is no model yet. Previews are available once the seed items are answered. You can change settings before that.");

function text(id, words) {
  if (node(id).textContent !== words) node(id).textContent = words;
}

const say = (words, look) => showNotice(node("notice"), words, look);

// -- requests ----------------------------------------------------------------------------------------------------------
/** Whether the edits are valid; otherwise focus the first error. */
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

/** Show an error next to its field, or above the buttons. */
async function fail(problem) {
  if (problem instanceof SignedOut) return location.assign("/login?next=/decide");
  if (problem.kind === "changed_meanwhile") {
    await attempt(look);
    refused = { field: null, words: "The settings have been changed in the meantime. Check the current values, and apply yours again if you still want them." };
  } else if (problem instanceof Refused || problem.kind) {
    const keys = edit.list.map((one) => one.key);
    const field = fieldOf(problem.message, edit.list, values);
    refused = { field: form.fields.has(field) ? field : null, words: settingError(problem, keys) };
  } else {
    refused = { field: null, words: "The server cannot be reached. Your edits are kept. Try again." };
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
    preview.clear(about || !problem.kind ? preview.usual : settingError(problem));
    if (about || !problem.kind) await fail(problem);
  }
  draw();
}

async function use() {
  if (!ready() || !edit.list.length) return;
  [refused, key] = [null, key ?? newKey()];
  say("");
  node("use").disabled = true;
  const sent = { changes: edit.changes, key, after: found.history.length };
  const next = await attempt(() => api.call("POST", "/settings", sent));
  if (!next) return;
  key = null;
  preview.clear(opening());
  take(next, {});
  say(`Saved. Applies from round ${state.round + 1} on.`);
  node("panel-title").focus();
}

node("preview").addEventListener("click", lookAhead);
node("use").addEventListener("click", use);
node("discard").addEventListener("click", discard);
node("form").addEventListener("submit", (event) => event.preventDefault());
node("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.type === "number") lookAhead();
});

// -- events --------------------------------------------------------------------------------------------------------------
events.on("state", (now) => {
  const opened = now.round !== state.round;
  const changed = opened || now.written !== state.written;
  state = { ...state, ...now };
  form.follow(found, state);
  draw(document.activeElement?.dataset?.field);
  if (changed) refresh(opened);
});
events.on("lost", () => text("line", "Connection lost. Reconnecting …"));
events.on("found", (again) => {
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
  events.start();
}

begin().catch((problem) => {
  if (problem instanceof SignedOut) location.assign("/login?next=/decide");
  else node("loading").textContent = `${sentence(problem.message)} Reload the page.`;
});
