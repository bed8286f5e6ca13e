// The watch page: reloads its data when something has changed, and redraws only the sections that differ.

import { Api, Refused, SignedOut } from "../annotate/api.js";
import { count, percent } from "../annotate/dom.js";
import { newKey } from "../annotate/store.js";
import { errorText, showNotice } from "../format.js";
import { EventStream } from "./event_stream.js";
import { plain, tile } from "./parts.js";

const PAUSE = 3000; // milliseconds between two requests while people annotate
const FOCUSED = "a, button, input, summary, [tabindex]";
const api = new Api();
const node = (id) => document.getElementById(id);
const drawn = new Map(); // content of each section, as JSON
let shown = null;
let state = null;
let phase = null; // the phase when `shown` was loaded
let stage = null; // last progress event of the training
let asked = 0; // time of the last request
let waiting = null;
const panels = new Map(); // the module of each panel: draw, and if it needs them key and update

// -- loading ---------------------------------------------------------------------------------------------------------

/** Reload the data, now or after a pause. */
function refresh(soon = false) {
  if (waiting && !soon) return;
  clearTimeout(waiting);
  waiting = setTimeout(look, soon ? 0 : Math.max(0, asked + PAUSE - Date.now()));
}

async function look() {
  waiting = null;
  asked = Date.now();
  try {
    const found = await api.call("GET", "/dashboard?whole=false");
    [state, shown, phase] = [found.state, found.shown, found.state.phase];
    draw();
  } catch (problem) {
    if (problem instanceof SignedOut) location.assign("/login?next=/watch");
    else if (problem instanceof Refused) say(problem);
    else refresh();
  }
}

const say = (problem) => showNotice(node("notice"), problem ? errorText(problem) : "", "wrong");

/** Run an action and show an error if it fails. */
async function attempt(work) {
  say(null);
  try {
    return await work();
  } catch (problem) {
    if (problem instanceof SignedOut) location.assign("/login?next=/watch");
    say(problem);
    return null;
  }
}

// -- drawing ---------------------------------------------------------------------------------------------------------

/** Load the scripts of the panels that have one. */
async function load() {
  const bodies = [...document.querySelectorAll("[data-part]")];
  const modules = await Promise.all(bodies.map(({ dataset }) => (dataset.script ? import(dataset.script) : { draw: plain })));
  bodies.forEach(({ dataset }, at) => panels.set(dataset.part, modules[at]));
}

/** Redraw a panel if it has changed, keeping focus, open details and scroll positions. */
function part(name, { draw: make, key = (value) => value, update = () => {} }, page) {
  const value = shown.panels[name];
  const known = JSON.stringify(key(value, page));
  if (drawn.get(name) !== known) redraw(name, known, () => make(value, page));
  update(value);
}

function redraw(name, known, make) {
  drawn.set(name, known);
  const body = document.querySelector(`[data-part="${name}"]`);
  const all = (selector) => [...body.querySelectorAll(selector)];
  const open = all("details").map((details) => details.open);
  const scrolled = all(".table-frame").map((frame) => frame.scrollTop);
  const focused = all(FOCUSED).indexOf(document.activeElement);
  body.replaceChildren(...make().flat(3).filter(Boolean));
  all("details").forEach((details, k) => (details.open = open[k] ?? false));
  all(".table-frame").forEach((frame, k) => (frame.scrollTop = scrolled[k] ?? 0));
  if (focused >= 0) all(FOCUSED)[focused]?.focus({ preventScroll: true });
  body.removeAttribute("aria-busy");
}

function draw() {
  text("headline", shown.headline);
  text("lead", shown.lead);
  text("story", shown.story.join(" "));
  document.title = `${shown.headline} · ${shown.name}`;
  tiles(shown.tiles);
  live();
  const page = { api, attempt, events, shown, looks: shown.looks, state: () => state };
  for (const [name, module] of panels) part(name, module, page);
}

function text(id, words) {
  if (node(id).textContent !== words) node(id).textContent = words;
}

function tiles(list) {
  const known = JSON.stringify(list);
  if (drawn.get("tiles") === known) return;
  drawn.set("tiles", known);
  node("tiles").replaceChildren(...list.map(tile));
}

/** The training strip: its progress, or what to do before it starts. */
function live() {
  const training = state.phase === "training";
  if (!training && state.phase !== phase) return; // its texts are being loaded
  const { title, words, button, annotate } = shown.train;
  node("live").hidden = !training && !title;
  node("train").hidden = training || !button;
  node("live-annotate").hidden = training ? !state.open : !annotate;
  node("live-annotate").classList.toggle("primary", !training && !button);
  node("live-bar").hidden = !training;
  text("train", button ?? "");
  if (!training) {
    text("live-what", title);
    text("live-words", words);
    return;
  }
  const which = (stage?.round ?? state.round) <= 0 ? "Seed items" : `Round ${stage?.round ?? state.round}`;
  text("live-what", stage ? `${which}: ${stage.what}, ${percent(stage.done)}` : `${which}: starting`);
  if (stage) node("live-bar").value = stage.done;
  else node("live-bar").removeAttribute("value");
  const open = state.open ? `People can go on annotating: ${count(state.open, "item is", "items are")} open.` : "";
  text("live-words", open || "Training runs in the background. You can close this page.");
}

// -- training --------------------------------------------------------------------------------------------------------

node("train").addEventListener("click", async () => {
  const { ask, close, button } = shown.train;
  if (ask && !(await sure(ask))) return;
  node("train").disabled = true;
  const body = { key: newKey(), close, round: state.round };
  const found = await attempt(() => api.call("POST", "/rounds", body));
  node("train").disabled = false;
  if (found) state = found;
  if (button) refresh(true);
});

function sure(words) {
  const dialog = node("ask");
  node("ask-words").textContent = words;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

// -- events ------------------------------------------------------------------------------------------------------------

const events = new EventStream(api);
events.on("state", (now) => {
  const other = !state || now.phase !== state.phase || now.round !== state.round;
  const changed = other || now.written !== state.written;
  if (now.phase !== "training") stage = null;
  state = { ...state, ...now };
  if (shown) live();
  if (changed) refresh(other);
});
events.on("stage", (now) => {
  stage = now;
  if (state) state = { ...state, phase: "training" };
  if (shown) live();
  if (phase !== "training") refresh(true); // the headline changes too
});
events.on("scored", () => refresh(true));
events.on("lost", () => {
  node("line").textContent = "Connection lost. Reconnecting …";
  node("line").className = "line-state lost";
});
events.on("found", (again) => {
  node("line").textContent = "";
  node("line").className = "line-state";
  if (again) refresh(true);
});

Promise.all([load(), attempt(() => api.me())]).then(() => {
  events.start();
  refresh(true);
});
