// The dashboard: asks for everything when something has changed, and draws anew only what is not as it was.

import { Api, Refused, SignedOut } from "../annotate/api.js";
import { count, percent } from "../annotate/dom.js";
import { News } from "./news.js";
import { nextRound } from "./next.js";
import { curves, oracle, sentence, spending, stopping, tile, trust } from "./parts.js";
import { split } from "./split.js";

const CALM = 3000; // milliseconds between two looks while people annotate
const FOCUSED = "a, button, input, summary, [tabindex]";
const api = new Api();
const node = (id) => document.getElementById(id);
const drawn = new Map(); // part to what it shows, as JSON
let shown = null;
let state = null;
let phase = null; // the one that `shown` is about
let stage = null; // what the training told last
let asked = 0; // when the server was last asked for everything
let waiting = null;
let follow = () => {}; // keeps the split up to date without drawing it anew

// -- asking ----------------------------------------------------------------------------------------------------------

/** Ask for everything; soon, or as soon as it is not too often. */
function refresh(soon = false) {
  if (waiting && !soon) return;
  clearTimeout(waiting);
  waiting = setTimeout(look, soon ? 0 : Math.max(0, asked + CALM - Date.now()));
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

function say(problem) {
  const words = problem?.message ?? "";
  node("told").hidden = !words;
  node("told").textContent = words && sentence({ error: words, fix: problem.fix });
}

/** Do something the lead asked for; where it fails, say why. */
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

/** Draw a part if it is not as it was; what has the focus in it, is open or scrolled, stays so. */
function part(name, value, make) {
  const known = JSON.stringify(value);
  if (drawn.get(name) === known) return;
  drawn.set(name, known);
  const body = document.querySelector(`[data-part="${name}"]`);
  const all = (selector) => [...body.querySelectorAll(selector)];
  const open = all("details").map((details) => details.open);
  const scrolled = all(".table-frame").map((frame) => frame.scrollTop);
  const focused = all(FOCUSED).indexOf(document.activeElement);
  body.replaceChildren(...make(value).flat(3).filter(Boolean));
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
  part("curves", shown.curves, curves);
  part("spending", shown.spending, spending);
  // Somebody may be reading what these two found, or typing: answers of others do not take it away.
  const means = { api, attempt, news, shown, looks: shown.looks, state: () => state };
  part("next", { ...shown.next, round: state.round }, (value) => nextRound(value, means));
  part("split", { ...shown.split, amount: null, why: null }, () => {
    const made = split(shown.split, means);
    follow = made.follow;
    return made.nodes;
  });
  follow(shown.split);
  part("trust", shown.trust, trust);
  part("stopping", shown.stopping, stopping);
  part("oracle", shown.oracle, oracle);
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

/** The strip of the training: how far it is, or what to do until it begins. */
function live() {
  const training = state.phase === "training";
  if (!training && state.phase !== phase) return; // its words come in a moment: till then nothing jumps
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
  text("live-what", stage ? `${which}: ${stage.what}, ${percent(stage.done)}` : `${which}: getting ready`);
  if (stage) node("live-bar").value = stage.done;
  else node("live-bar").removeAttribute("value");
  const open = state.open ? `People go on annotating: ${count(state.open, "item is", "items are")} open.` : "";
  text("live-words", open || "It runs beside the page: nobody’s work is held up, and closing this page does not stop it.");
}

// -- training --------------------------------------------------------------------------------------------------------

node("train").addEventListener("click", async () => {
  const { ask, close, button } = shown.train;
  if (ask && !(await sure(ask))) return;
  node("train").disabled = true;
  const body = { key: crypto.randomUUID?.() ?? `train-${Date.now()}`, close, round: state.round };
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
  return new Promise((tell) => dialog.addEventListener("close", () => tell(dialog.returnValue === "yes"), { once: true }));
}

// -- news ------------------------------------------------------------------------------------------------------------

const news = new News(api);
news.on("state", (now) => {
  const other = !state || now.phase !== state.phase || now.round !== state.round;
  const changed = other || now.written !== state.written;
  if (now.phase !== "training") stage = null;
  state = { ...state, ...now };
  if (shown) live();
  if (changed) refresh(other);
});
news.on("stage", (now) => {
  stage = now;
  if (state) state = { ...state, phase: "training" };
  if (shown) live();
  if (phase !== "training") refresh(true); // the headline says so too
});
news.on("scored", () => refresh(true));
news.on("lost", () => {
  node("line").textContent = "Connection lost, trying again…";
  node("line").className = "line-state lost";
});
news.on("found", (again) => {
  node("line").textContent = "";
  node("line").className = "line-state";
  if (again) refresh(true);
});

attempt(() => api.me()).then(() => {
  news.start();
  refresh(true);
});
