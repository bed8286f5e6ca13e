// The result of a preview: the next round with the current settings, and with the changes.

import { count as many, el, svg } from "../annotate/dom.js";
import { sentence } from "../format.js";

const LONGEST = 160; // characters of a text shown
const AT_ONCE = 6; // items requested at a time
const SAME = "same";

/** The comparison; items are filled in as they are loaded. Without changes, there is only one side. */
export function comparison(found, changed, money, itemOf) {
  const { now, then } = found;
  const sides = [[now, "With the current settings, there is no next round"], [then, "With your changes, there is no next round"]].slice(0, changed ? 2 : 1);
  const parts = sides.filter(([side]) => side.why).map(([side, words]) => el("p", { class: "notice" }, `${words}: ${side.why}.`));
  parts.push(el("div", { class: "table-frame" }, table(found, changed, money)));
  if (!changed) return parts;
  if (now.items + then.items) parts.push(overlap(found));
  parts.push(
    el(
      "div",
      { class: "lists" },
      list("Only with current settings", "now", found.removed, found.removed_items, itemOf),
      list("Only with your changes", "then", found.added, found.added_items, itemOf),
    ),
  );
  return parts;
}

function table({ now, then }, changed, money) {
  const columns = changed ? 3 : 1;
  const row = (name, one, other, difference) => {
    const cells = [one, other, difference].slice(0, columns);
    return el("tr", {}, el("th", { scope: "row" }, name), ...cells.map((text) => el("td", { class: text === SAME ? "number same" : "number" }, text)));
  };
  const numbers = (name, one, other, show = plain) => row(name, show(one), show(other), apart(one, other, show));
  const rows = [
    row("Strategy", el("bdi", {}, now.strategy), el("bdi", {}, then.strategy), now.strategy === then.strategy ? SAME : ""),
    numbers("Budget", now.budget, then.budget, money.budgetUnits),
    numbers("Estimated cost", now.cost, then.cost, money.units),
    numbers("Items", now.items, then.items),
  ];
  if (now.audit || then.audit) rows.push(numbers("Of those, audit items", now.audit, then.audit));
  const tasks = [...new Set([...Object.keys(now.labels), ...Object.keys(then.labels)])];
  for (const task of tasks) rows.push(numbers(["Labels of ", el("bdi", {}, task)], now.labels[task] ?? 0, then.labels[task] ?? 0));
  const doubted = tasks.filter((task) => task in now.doubt || task in then.doubt);
  if (now.measure === then.measure) {
    for (const task of doubted) rows.push(numbers(["Uncertainty of ", el("bdi", {}, task), el("small", {}, ` mean, by ${now.measure}`)], now.doubt[task], then.doubt[task], thousandths));
  }
  if (now.certificate || then.certificate) rows.push(row("Total score", certified(now.certificate), certified(then.certificate), ""));
  const titles = ["Current settings", "With your changes", "Difference"].slice(0, columns);
  const head = el("tr", {}, el("td"), ...titles.map((title) => el("th", { scope: "col", class: "number" }, title)));
  return el("table", { class: changed ? "compare" : "compare alone" }, el("thead", {}, head), el("tbody", {}, ...rows));
}

const plain = (count) => count.toLocaleString("en");
const thousandths = (value) => (value === undefined ? "–" : value.toFixed(3));

/** The difference of two numbers, if both exist and look different. */
function apart(one, other, show) {
  if (one === undefined || other === undefined) return "";
  return show(one) === show(other) ? SAME : `${other > one ? "+" : "−"}${show(Math.abs(other - one))}`;
}

/** The sum of scores, and its share of the proven optimum. */
function certified(certificate) {
  if (!certificate) return "–";
  const { objective, bound, optimal } = certificate;
  const sum = objective.toLocaleString("en", { maximumFractionDigits: 2 });
  if (optimal) return [sum, el("small", {}, "optimal")];
  if (bound === null || bound <= 0) return sum;
  return [sum, el("small", {}, `≥ ${Math.floor((1000 * objective) / bound) / 10} % of the optimum`)];
}

function overlap({ same, added, removed }) {
  const all = Math.max(1, same + added + removed);
  const [first, middle] = [(1000 * removed) / all, (1000 * same) / all];
  const rect = (look, x, width) => svg("rect", { class: look, x, y: 0, width: Math.max(0, width), height: 12 });
  const words = `${many(same, "item")} in both, ${removed.toLocaleString("en")} only with the current settings, ${added.toLocaleString("en")} only with your changes.`;
  return el(
    "figure",
    { class: "overlap" },
    svg(
      "svg",
      { viewBox: "0 0 1000 12", preserveAspectRatio: "none", role: "img", "aria-label": words },
      rect("now", 0, first - 2),
      rect("both", first, middle - 2),
      rect("then", first + middle, 1000 - first - middle),
    ),
    el("figcaption", {}, words),
  );
}

function list(title, look, count, ids, itemOf) {
  const rows = ids.map((id) => el("li", {}, el("span", { class: "mono" }, id)));
  fill(ids, rows, itemOf);
  const shown = ids.length < count ? `Showing ${ids.length} of ${count.toLocaleString("en")}.` : "";
  return el(
    "div",
    { class: `only ${look}` },
    el("h3", {}, `${title} (${count.toLocaleString("en")})`),
    count ? el("ol", {}, ...rows) : el("p", { class: "aside" }, "None."),
    shown ? el("p", { class: "aside" }, shown) : null,
  );
}

async function fill(ids, rows, itemOf) {
  const waiting = ids.map((id, at) => [id, rows[at]]);
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const item = await itemOf(next[0]).catch(() => null); // its id is shown anyway
      if (item) next[1].append(item.kind === "image" ? picture(item) : text(item));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

const picture = (item) => el("img", { src: item.image, alt: "", loading: "lazy" });

function text(item) {
  const whole = item.second ? `${item.text} · ${item.second.text}` : item.text;
  const letters = Array.from(whole);
  return el("span", { class: "text", dir: "auto", title: letters.length > LONGEST ? whole : null }, letters.length > LONGEST ? `${letters.slice(0, LONGEST).join("")}…` : whole);
}

/** How certain the preview is. */
export function trust(found, state) {
  const round = `Round ${found.round}`;
  if (found.settled) return `${round}, selected by a model trained on all answers. The round will be exactly this.`;
  const open = state.open ? ` ${many(state.open, "item is", "items are")} still open. Their answers will change the model, so the selection may differ.` : " Newer answers will change the model, so the selection may differ.";
  return sentence(`${round}, selected by the latest model.${open}`);
}
