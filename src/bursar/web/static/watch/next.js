// What the next round would buy: asked for with a button, for choosing takes the server a moment.

import { count, el, percent } from "../annotate/dom.js";
import { shareRows } from "./rows.js";
import { empty, money, note, sentence, tile } from "./parts.js";

const EVERY = 1500; // milliseconds between two looks at a preview whose news may have been lost

export function nextRound(part, { api, attempt, news, shown, state }) {
  const gain = part.gain ? el("dl", { class: "tiles" }, tile(part.gain)) : null;
  const decide = el("a", { class: "button", href: "/decide" }, "Change what it does");
  if (!part.may) return [...empty(part), gain, el("p", { class: "actions" }, decide)];
  const found = el("div", { class: "found", "aria-live": "polite" }, gain);
  const aged = el("p", { class: "aside note", hidden: true }, "Something was answered or changed since: look again.");
  const bar = el("progress", { max: 1, hidden: true, "aria-label": "Choosing" });
  const button = el("button", { class: "button primary", type: "button" }, "See what it would buy");
  let written = null; // the state that was looked at

  const over = (result, wrong) => {
    button.disabled = false;
    bar.hidden = true;
    if (wrong) found.replaceChildren(el("p", { class: "notice wrong" }, sentence(wrong)));
    else if (result) found.replaceChildren(...bought(result, part.gain, shown));
    aged.hidden = true;
  };
  button.addEventListener("click", async () => {
    button.disabled = true;
    bar.hidden = false;
    bar.removeAttribute("value");
    written = state().written;
    const job = await attempt(() => api.call("POST", "/preview", { changes: {} }));
    if (job) settled(job.job, { api, attempt, news, bar, over });
    else over(null);
  });
  const told = (now) => {
    if (!button.isConnected) news.off("state", told);
    else if (written !== null && now.written !== written && !button.disabled) aged.hidden = false;
  };
  news.on("state", told);
  const intro = "As it would be chosen now, by the newest model and the settings in force. Nothing is decided by looking.";
  return [el("p", { class: "intro" }, intro), el("p", { class: "actions" }, button, decide, bar), found, aged];
}

/** Wait until a preview is done: the server says so, and where its word is lost, asking finds out. */
function settled(job, { api, attempt, news, bar, over }) {
  let ended = false;
  const look = async () => {
    const now = await attempt(() => api.call("GET", `/preview/${job}`));
    if (ended) return;
    if (now && !now.done) {
      if (now.progress) bar.value = now.progress;
      return;
    }
    ended = true;
    clearInterval(timer);
    news.off("preview", told);
    over(now?.result, now?.wrong);
  };
  const told = (event) => event.job === job && look();
  const timer = setInterval(look, EVERY);
  news.on("preview", told);
  look();
}

function bought({ round, settled: sure, now }, gain, shown) {
  if (now.why) return [el("p", { class: "empty" }, `Round ${round} would buy nothing: ${now.why}.`)];
  const show = (units) => money(units, shown.money);
  const entries = Object.entries(now.labels);
  const labels = entries.reduce((sum, [, many]) => sum + many, 0);
  const rows = entries.map(([name, many]) => ({ name, look: shown.looks[name], share: many / Math.max(1, now.items), value: count(many, "label"), note: doubt(now, name) }));
  const audit = now.audit ? `${now.audit.toLocaleString("en")} of them at random, for the audit` : `chosen by ${now.strategy}`;
  const tiles = [
    tile({ title: `Items of round ${round}`, value: now.items.toLocaleString("en"), note: audit }),
    tile({ title: "Labels", value: labels.toLocaleString("en"), note: now.audit ? `chosen by ${now.strategy}` : "for all tasks" }),
    tile({ title: "Cost", value: show(now.cost), note: shown.by_item ? "estimated" : `estimated, of ${show(now.budget)} for the round` }),
    gain ? tile(gain) : null,
  ];
  const firm = sure ? "Nothing is open: the next round buys just that." : "Items that are open count as answered; what people say of them may change the choice.";
  return [el("dl", { class: "tiles" }, tiles), shareRows(rows), note(firm)];
}

/** How unsure the model is of what would be bought; nothing where it was not asked. */
const doubt = ({ doubt: unsure, strategy }, name) => (name in unsure ? `the model is ${percent(1 - unsure[name])} sure of those that ${strategy} chose` : null);
