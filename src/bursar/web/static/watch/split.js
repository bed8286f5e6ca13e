// How to split money between the tasks: asked for, worked out beside the server, and kept until somebody asks again.

import { count, el } from "../annotate/dom.js";
import { rangeRows, shareRows } from "./rows.js";
import { empty, money, note, sentence, tables } from "./parts.js";

const INTRO =
  "Tasks that learn from each other’s labels, or have learned most of what they can, need fewer of their own. Ask, and the labels that there are say how the money would go furthest.";

/** The section, and what keeps it up to date: an amount that nobody has touched follows the budget. */
export function split(part, { api, attempt, news, looks, state, shown }) {
  if (part.empty) return { nodes: empty(part), follow: () => {} };
  const { currency } = shown.money;
  const field = el("input", { name: "amount", type: "number", min: "0", step: "any", required: true, value: part.amount, inputmode: "decimal" });
  const button = el("button", { class: "button primary", type: "submit" }, "Ask how to split it");
  const bar = el("progress", { max: 1, "aria-label": "Measuring" });
  const stage = el("span", { class: "aside", role: "status" });
  const busy = el("p", { class: "busy", hidden: true }, bar, stage);
  const found = el("div", { class: "found", "aria-live": "polite" });
  const filled = el("p", { class: "aside" });
  const aged = el("p", { class: "aside note" });
  const form = el("form", { class: "row ask" }, el("label", { class: "field" }, currency ? `Money to split, in ${currency}` : "Money to split, in units", field), button, filled);
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
      stage.textContent = advice.what ? `Measuring ${advice.what}: ${Math.round(100 * advice.progress)} %` : "Beginning";
    } else if (advice?.wrong) {
      newest = null;
      found.replaceChildren(el("p", { class: "notice wrong" }, sentence(advice.wrong)));
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
  const told = (now) => (form.isConnected ? (now.done ? look() : show(now)) : news.off("advice", told));
  const again = (dropped) => (form.isConnected ? dropped && look() : news.off("found", again));
  news.on("advice", told);
  news.on("found", again); // what was asked for may have ended with the server
  queueMicrotask(look);

  const follow = (now) => {
    const wait = "Asking trains many small models beside the page and takes a while; nobody’s work is held up.";
    filled.textContent = field.dataset.touched ? wait : `Filled in: ${now.why}. ${wait}`;
    if (!field.dataset.touched && field.value !== now.amount) field.value = now.amount;
    age();
  };
  const past = part.past.length ? [el("h3", {}, "How the rounds were split so far"), el("ul", { class: "reasons" }, part.past.map((text) => el("li", {}, text)))] : [];
  return { nodes: [el("p", { class: "intro" }, INTRO), el("div", { class: "card" }, form, busy), found, past, tables(part.tables)], follow };
}

/** When it was asked, and whether that is long ago. */
function asked({ result, asked_at: then }, state, shown) {
  const since = state.spent - then.spent;
  const more = shown.by_item ? count(since, "more item") : money(since, shown.money);
  const stale = since > 0 ? ` Since then ${more} ${shown.by_item && since > 1 ? "were" : "was"} ${shown.by_item ? "bought" : "spent"}: ask again for newer advice.` : "";
  return `Asked ${then.round <= 0 ? "after the seed items" : `in round ${then.round}`}, for ${result.budget}.${stale}`;
}

function advised({ result }, looks) {
  const ends = { low: Math.min(0, ...result.gains.map((row) => row.low)), high: Math.max(1e-9, ...result.gains.map((row) => row.high)) };
  const gains = result.gains.map((row) => ({ ...row, name: row.task, look: looks[row.task], value: row.gain, note: row.between }));
  const shares = result.shares.map((row) => ({ ...row, name: row.task ?? "All tasks at once", look: looks[row.task] ?? "arm-1", value: row.money }));
  return [
    el(
      "div",
      { class: "charts beside even" },
      el("div", {}, el("h3", {}, `How to split ${result.budget}`), shareRows(shares)),
      el("div", {}, el("h3", {}, "What each task gains, in labels of its own"), rangeRows(gains, ends), note(`Lines hold 9 of 10 cases. All tasks: ${result.whole}.`)),
    ),
    el("div", { class: "charts beside even" }, informs(result.informs), el("div", {}, el("h3", {}, "Why"), el("ul", { class: "reasons" }, result.reasons.map((reason) => el("li", {}, reason))))),
    ...tables(result.tables),
  ];
}

/** Who informs whom: a table whose cells are the darker the more a label is worth. */
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
    el("h3", {}, "Who informs whom"),
    el(
      "div",
      { class: "table-frame" },
      el(
        "table",
        { class: "heat" },
        el("caption", { class: "unseen" }, "What a label of a row’s task is worth to a column’s, in labels of its own"),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "A label of"), tasks.map((name) => el("th", { scope: "col" }, `for ${name}`)))),
        el("tbody", {}, tasks.map((name, at) => el("tr", {}, el("th", { scope: "row" }, name), value[at].map((worth, to) => cell(worth, error[at][to]))))),
      ),
    ),
    note("In labels of the column’s own: 0.5 means that two labels of the row’s task are worth one of the column’s."),
  );
}
