// The preview of the next round, requested with a button because it takes a while.

import { count, el, percent } from "../../annotate/dom.js";
import { shareRows } from "../rows.js";
import { errorText } from "../../format.js";
import { finishedPreview } from "../../preview_job.js";
import { empty, money, note, tile } from "../parts.js";

/** Redrawn only if this changes: new answers keep the preview. */
export const key = (part, { state }) => ({ ...part, round: state().round });

export function draw(part, { api, attempt, events, shown, state }) {
  const gain = part.gain ? el("dl", { class: "tiles" }, tile(part.gain)) : null;
  const decide = el("a", { class: "button", href: "/decide" }, "Change settings");
  if (!part.may) return [...empty(part), gain, el("p", { class: "actions" }, decide)];
  const found = el("div", { class: "found", "aria-live": "polite" }, gain);
  const aged = el("p", { class: "aside note", hidden: true }, "There are new answers or changes. Preview again.");
  const bar = el("progress", { max: 1, hidden: true, "aria-label": "Preview" });
  const button = el("button", { class: "button primary", type: "button" }, "Preview");
  let written = null; // the state that was previewed

  button.addEventListener("click", async () => {
    button.disabled = true;
    bar.hidden = false;
    bar.removeAttribute("value");
    written = state().written;
    const finished = await attempt(async () => {
      const { job } = await api.call("POST", "/preview", { changes: {} });
      return finishedPreview(api, events, job, { onProgress: (share) => (bar.value = share) });
    });
    button.disabled = false;
    bar.hidden = aged.hidden = true;
    if (finished?.wrong) found.replaceChildren(el("p", { class: "notice wrong" }, errorText({ ...finished.wrong, message: finished.wrong.error })));
    else if (finished) found.replaceChildren(...preview(finished.result, part.gain, shown));
  });
  const onState = (now) => {
    if (!button.isConnected) events.off("state", onState);
    else if (written !== null && now.written !== written && !button.disabled) aged.hidden = false;
  };
  events.on("state", onState);
  const intro = "The selection of the latest model with the current settings. A preview does not start the round.";
  return [el("p", { class: "intro" }, intro), el("p", { class: "actions" }, button, decide, bar), found, aged];
}

function preview({ round, settled: sure, now }, gain, shown) {
  if (now.why) return [el("p", { class: "empty" }, `Round ${round} would have no items: ${now.why}.`)];
  const show = (units) => money(units, shown.money);
  const entries = Object.entries(now.labels);
  const labels = entries.reduce((sum, [, many]) => sum + many, 0);
  const rows = entries.map(([name, many]) => ({ name, look: shown.looks[name], share: many / Math.max(1, now.items), value: count(many, "label"), note: doubt(now, name) }));
  const audit = now.audit ? `including ${count(now.audit, "audit item")}` : `selected by ${now.strategy}`;
  const tiles = [
    tile({ title: `Items of round ${round}`, value: now.items.toLocaleString("en"), note: audit }),
    tile({ title: "Labels", value: labels.toLocaleString("en"), note: now.audit ? `selected by ${now.strategy}` : "for all tasks" }),
    tile({ title: "Cost", value: show(now.cost), note: shown.by_item ? "estimated" : `estimated, of ${show(now.budget)} for the round` }),
    gain ? tile(gain) : null,
  ];
  const firm = sure ? "No items are open: the next round will be exactly this." : "Open items count as answered. Their answers may change the selection.";
  return [el("dl", { class: "tiles" }, tiles), shareRows(rows), note(firm)];
}

/** The mean confidence of the model in the selected items, if it was used. */
const doubt = ({ doubt: unsure, strategy }, name) => (name in unsure ? `mean confidence ${percent(1 - unsure[name])} on the items selected by ${strategy}` : null);
