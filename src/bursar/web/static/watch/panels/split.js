// Advice on splitting the budget between tasks, computed in the background on request.

import { count, el } from "../../annotate/dom.js";
import { rangeRows, shareRows } from "../rows.js";
import { errorText } from "../../format.js";
import { empty, money, note, tables } from "../parts.js";

const INTRO =
  "Tasks that benefit from each other’s labels, or that are close to their best score, need fewer labels of their own. The advice is based on the labels so far.";

let follow = () => {};

/** Redrawn only if this changes: new answers keep the result and a typed amount. */
export const key = (part) => ({ ...part, amount: null, why: null });

/** Called with new data: keeps an unedited amount in step with the budget. */
export const update = (part) => follow(part);

export function draw(part, { api, attempt, events, looks, state, shown }) {
  follow = () => {};
  if (part.empty) return empty(part);
  const { currency } = shown.money;
  const field = el("input", { name: "amount", type: "number", min: "0", step: "any", required: true, value: part.amount, inputmode: "decimal" });
  const button = el("button", { class: "button primary", type: "submit" }, "Get advice");
  const bar = el("progress", { max: 1, "aria-label": "Measuring" });
  const stage = el("span", { class: "aside", role: "status" });
  const busy = el("p", { class: "busy", hidden: true }, bar, stage);
  const found = el("div", { class: "found", "aria-live": "polite" });
  const filled = el("p", { class: "aside" });
  const aged = el("p", { class: "aside note" });
  const form = el("form", { class: "row ask" }, el("label", { class: "field" }, currency ? `Amount to split, in ${currency}` : "Amount to split, in units", field), button, filled);
  let newest = null;

  const age = () => {
    if (newest?.result) aged.textContent = asked(newest, state(), shown);
  };
  const show = (advice) => {
    const waits = Boolean(advice && !advice.done);
    button.disabled = waits;
    busy.hidden = !waits;
    if (waits) {
      if (advice.progress) bar.value = advice.progress;
      else bar.removeAttribute("value");
      stage.textContent = advice.what ? `Measuring ${advice.what}: ${Math.round(100 * advice.progress)} %` : "Starting";
    } else if (advice?.wrong) {
      newest = null;
      found.replaceChildren(el("p", { class: "notice wrong" }, errorText({ ...advice.wrong, message: advice.wrong.error })));
    } else if (advice?.result) {
      newest = advice;
      found.replaceChildren(aged, ...advised(advice, looks));
      age();
    }
  };
  const look = async () => {
    const { advice } = (await attempt(() => api.call("GET", "/advice"))) ?? {};
    if (advice !== undefined && form.isConnected) show(advice);
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const advice = await attempt(() => api.call("POST", "/advice", { amount: Number(field.value) }));
    if (advice) show(advice);
  });
  field.addEventListener("input", () => (field.dataset.touched = "yes"));
  const onAdvice = (now) => (form.isConnected ? (now.done ? look() : show(now)) : events.off("advice", onAdvice));
  const again = (dropped) => (form.isConnected ? dropped && look() : events.off("found", again));
  events.on("advice", onAdvice);
  events.on("found", again); // a server restart ends a running request
  queueMicrotask(look);

  follow = (now) => {
    const wait = "This trains many small models in the background and takes a while.";
    filled.textContent = field.dataset.touched ? wait : `Default: ${now.why}. ${wait}`;
    if (!field.dataset.touched && field.value !== now.amount) field.value = now.amount;
    age();
  };
  const past = part.past.length ? [el("h3", {}, "Splits of the rounds so far"), el("ul", { class: "reasons" }, part.past.map((text) => el("li", {}, text)))] : [];
  return [el("p", { class: "intro" }, INTRO), el("div", { class: "card" }, form, busy), found, past, tables(part.tables)];
}

/** When the advice was requested, and whether it is outdated. */
function asked({ result, asked_at: then }, state, shown) {
  const since = state.spent - then.spent;
  const more = shown.by_item ? count(since, "more item") : money(since, shown.money);
  const stale = since > 0 ? ` Since then, ${more} ${shown.by_item && since > 1 ? "were" : "was"} ${shown.by_item ? "bought" : "spent"}. Get new advice.` : "";
  return `Requested ${then.round <= 0 ? "after the seed items" : `in round ${then.round}`}, for ${result.budget}.${stale}`;
}

function advised({ result }, looks) {
  const ends = { low: Math.min(0, ...result.gains.map((row) => row.low)), high: Math.max(1e-9, ...result.gains.map((row) => row.high)) };
  const gains = result.gains.map((row) => ({ ...row, name: row.task, look: looks[row.task], value: row.gain, note: row.between }));
  const shares = result.shares.map((row) => ({ ...row, name: row.task ?? "All tasks at once", look: looks[row.task] ?? "arm-1", value: row.money }));
  return [
    el(
      "div",
      { class: "charts beside even" },
      el("div", {}, el("h3", {}, `Split of ${result.budget}`), shareRows(shares)),
      el("div", {}, el("h3", {}, "Gain of each task, in labels of its own"), rangeRows(gains, ends), note(`Lines are 90 % intervals. All tasks: ${result.whole}.`)),
    ),
    el("div", { class: "charts beside even" }, informs(result.informs), el("div", {}, el("h3", {}, "Reasons"), el("ul", { class: "reasons" }, result.reasons.map((reason) => el("li", {}, reason))))),
    ...tables(result.tables),
  ];
}

/** Informativeness between tasks: a table with darker cells for higher values. */
function informs({ tasks, value, error }) {
  const most = Math.max(1, ...value.flat());
  const cell = (worth, off) => {
    const node = el("td", {}, worth.toFixed(2), off ? el("small", {}, ` ± ${off.toFixed(2)}`) : null);
    node.style.setProperty("--share", `${Math.round((60 * Math.max(0, worth)) / most)}%`);
    return node;
  };
  return el(
    "div",
    {},
    el("h3", {}, "Informativeness between tasks"),
    el(
      "div",
      { class: "table-frame" },
      el(
        "table",
        { class: "heat" },
        el("caption", { class: "unseen" }, "Value of a label of the row’s task for the column’s task"),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "A label of"), tasks.map((name) => el("th", { scope: "col" }, `for ${name}`)))),
        el("tbody", {}, tasks.map((name, at) => el("tr", {}, el("th", { scope: "row" }, name), value[at].map((worth, to) => cell(worth, error[at][to]))))),
      ),
    ),
    note("0.5 means that two labels of the row’s task are worth one label of the column’s task."),
  );
}
