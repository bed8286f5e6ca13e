// The current settings, the edited values, and the resulting changes. No DOM here.

/** A value in nested tables. */
export const at = (table, key) => key.reduce((found, part) => (found === null || found === undefined ? undefined : found[part]), table);

const placed = (table, key, value) => {
  const last = key.length - 1;
  key.slice(0, last).reduce((found, part) => (found[part] ??= {}), table)[key[last]] = value;
};
const NO_SPLIT = "none";
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** The current settings as form values, by field name. */
export function shownSettings(found, tasks) {
  const { budget, costs, strategy, limits } = found.settings;
  const { base, spending, matching } = found.choices.strategy;
  const values = {
    "budget.total": budget.total ?? null,
    "budget.per_round": budget.per_round,
    "budget.rounds": budget.rounds,
    "budget.patience": budget.patience ?? null,
    "budget.ahead": percent(budget.ahead ?? 0),
    "costs.hourly": costs.hourly ?? null,
    "costs.measured": costs.measured ?? false,
    "costs.reserve": percent(costs.reserve ?? 0),
    base,
    spending: spending ?? usualSpending(found, base),
    matching,
    split: found.settings.allocation?.method ?? NO_SPLIT,
    "strategy.bins": strategy.bins ?? "length",
    "strategy.bin_count": strategy.bin_count ?? null,
    "group.by": limits.group?.by ?? "",
    "group.at_most": limits.group?.at_most ?? null,
  };
  for (const [what, prices] of Object.entries(found.prices.stated)) {
    for (const [per, price] of Object.entries(prices)) values[priceField(what, per)] = price;
  }
  const weights = strategy.weights ?? {};
  const some = Object.keys(weights).length > 0;
  for (const task of tasks) {
    values[weightField(task)] = some ? (weights[task] ?? 0) : 1;
    values[limitField(task, "at_least")] = limits.tasks?.[task]?.at_least || null;
    values[limitField(task, "at_most")] = limits.tasks?.[task]?.at_most ?? null;
  }
  return values;
}

export const priceField = (what, per) => `price ${per} ${what}`;
export const weightField = (task) => `weight ${task}`;
export const limitField = (task, which) => `${which} ${task}`;
const percent = (share) => Number((100 * share).toFixed(4));
const share = (value) => (typeof value === "number" ? Number((value / 100).toFixed(6)) : value);

export const strategyOf = (found, name) => found.choices.strategies.find((one) => one.name === name);
const waysOf = (found, spend, once) => found.choices.spendings.find((way) => way.spend === spend && way.once === once);

/** The default way of spending of a strategy. */
export const usualSpending = (found, base) => waysOf(found, strategyOf(found, base)?.spend ?? "greedy", false)?.name ?? "GRD_AL";

/** The ways of spending available to a strategy in this campaign. */
export function spendingsFor(found, base) {
  const now = found.choices.spendings.find((way) => way.name === found.choices.strategy.spending);
  const scores = strategyOf(found, base)?.scores ?? true;
  return found.choices.spendings.filter((way) => way.once === (now?.once ?? false) && (scores || way.spend === "greedy"));
}

/** Whether a round's budget can be split between tasks with this strategy. */
export const canSplit = (found, { base }) => found.choices.splits.length > 0 && (strategyOf(found, base)?.splits ?? false);

/** Whether a strategy supports limits; one without scores does not when it also has to match. */
export function keepsLimits(found, { base, matching }) {
  const known = strategyOf(found, base);
  return !known || (known.limits && (known.scores || !matching));
}

/** The full strategy name of a base, a way of spending and matching. */
export function strategyName(found, { base, spending, matching }) {
  const known = strategyOf(found, base);
  const way = spendingsFor(found, base).some((one) => one.name === spending) ? spending : null;
  const named = way && way !== usualSpending(found, base) ? [way] : [];
  return [base, ...named, ...(matching && (known?.matches ?? true) ? ["IDMR"] : [])].join("+");
}

/** The edited values by field. */
export const editsOf = (shown, values) => Object.fromEntries(Object.entries(values).filter(([name, value]) => name in shown && !same(value ?? null, shown[name] ?? null)));

/** The resulting changes: a list of settings, each with its fields, and the table to send. */
export function changesOf(found, tasks, shown, values) {
  const changes = {};
  const list = [];
  const change = (key, before, after, fields, send = true) => {
    if (same(before ?? null, after ?? null)) return;
    if (send) placed(changes, key, after ?? null);
    list.push({ key, before: before ?? null, after: after ?? null, fields });
  };
  const field = (name, key, read = (value) => value) => change(key, read(shown[name]), read(values[name]), [name]);
  const send = (key, value) => placed(changes, key, value);

  for (const name of ["total", "per_round", "rounds", "patience"]) field(`budget.${name}`, ["budget", name]);
  field("budget.ahead", ["budget", "ahead"], share);
  field("costs.hourly", ["costs", "hourly"]);
  field("costs.measured", ["costs", "measured"]);
  field("costs.reserve", ["costs", "reserve"], share);
  for (const [what, prices] of Object.entries(found.prices.stated)) {
    for (const per of Object.keys(prices)) field(priceField(what, per), ["costs", what, per]);
  }

  const named = strategyName(found, values);
  if (named !== strategyName(found, shown)) change(["strategy", "name"], found.settings.strategy.name, named, ["base", "spending", "matching"]);
  if (values.matching) {
    field("strategy.bins", ["strategy", "bins"]);
    field("strategy.bin_count", ["strategy", "bin_count"]);
  }
  const splits = canSplit(found, values);
  change(["allocation", "method"], shown.split, splits ? values.split : NO_SPLIT, splits ? ["split"] : ["base", "spending", "matching"]);
  weightChanges(found, tasks, shown, values, change, send);
  limitChanges(found, tasks, shown, values, change, send);
  return { changes, list };
}

function weightChanges(found, tasks, shown, values, change, send) {
  const before = found.settings.strategy.weights ?? {};
  const some = Object.keys(before).length > 0;
  if (!(strategyOf(found, values.base)?.weighted ?? false)) {
    if (some) change(["strategy", "weights"], before, null, ["base", "spending", "matching"]);
    return;
  }
  const names = tasks.map(weightField);
  if (names.every((name) => values[name] === shown[name])) return;
  tasks.forEach((task, at) => {
    change(["strategy", "weights", task], shown[names[at]], values[names[at]], [names[at]]);
    send(["strategy", "weights", task], values[names[at]]); // send all: a missing weight counts as 0
  });
}

function limitChanges(found, tasks, shown, values, change, send) {
  for (const task of tasks) {
    const sides = ["at_least", "at_most"];
    const none = !values[limitField(task, "at_least")] && values[limitField(task, "at_most")] === null;
    const gone = none && Boolean(found.settings.limits.tasks?.[task]);
    for (const side of sides) {
      const name = limitField(task, side);
      const after = side === "at_least" ? values[name] || null : values[name];
      change(["limits", "tasks", task, side], shown[name], after, [name], !gone);
    }
    if (gone && sides.some((side) => shown[limitField(task, side)] !== null)) send(["limits", "tasks", task], null);
  }
  const by = values["group.by"] || null;
  const gone = by === null;
  if (gone && !found.settings.limits.group) return;
  change(["limits", "group", "by"], shown["group.by"] || null, by, ["group.by"], !gone);
  if (gone) send(["limits", "group"], null);
  else change(["limits", "group", "at_most"], shown["group.at_most"], values["group.at_most"], ["group.at_most"]);
}

/** Errors in the edited values, by field, before they are sent. */
export function mistakesIn(found, tasks, values, money) {
  const wrong = new Map();
  const need = (name, holds, words) => (holds(values[name]) ? null : wrong.set(name, words));
  const number = (value) => typeof value === "number" && Number.isFinite(value);
  const whole = (value) => Number.isInteger(value);
  const amount = (value) => number(value) && value > 0 && (!money.byItem || whole(value));
  need("budget.per_round", amount, money.byItem ? "Enter a whole number above 0." : "Enter an amount above 0.");
  need("budget.rounds", (value) => whole(value) && value >= 0, "Enter a whole number, 0 or more.");
  need("budget.total", (value) => value === null || amount(value), "Enter an amount above 0, or leave empty for no limit.");
  need("budget.patience", (value) => value === null || (whole(value) && value > 0), "Enter a whole number above 0, or leave empty.");
  need("budget.ahead", (value) => number(value) && value >= 0 && value < 100, "Enter 0 % or more, but less than 100 %.");
  need("costs.hourly", (value) => value === null || (number(value) && value > 0), "Enter an amount above 0, or leave empty.");
  need("costs.reserve", (value) => number(value) && value >= 0 && value <= 1000, "Enter 0 to 1,000 %.");
  if (values["costs.measured"] && values["costs.hourly"] === null) wrong.set("costs.hourly", "Enter the cost of an hour.");
  for (const name of Object.keys(values).filter((one) => one.startsWith("price "))) {
    need(name, (value) => number(value) && value >= 0, "Enter a price, 0 or more.");
    need(name, (value) => !number(value) || value < 0 || money.payable(value), `Enter a multiple of ${money.show(money.unit)}.`);
  }
  if (strategyOf(found, values.base)?.weighted) {
    for (const task of tasks) need(weightField(task), (value) => number(value) && value >= 0, "Enter a weight, 0 or more.");
    if (tasks.every((task) => values[weightField(task)] === 0)) wrong.set(weightField(tasks[0]), "Give at least one task a weight above 0.");
  }
  if (values.matching) need("strategy.bin_count", (value) => whole(value) && value > 0, "Enter a whole number above 0.");
  const count = (value) => value === null || (whole(value) && value >= 0);
  for (const task of tasks) {
    const [least, most] = ["at_least", "at_most"].map((which) => limitField(task, which));
    need(least, count, "Enter a whole number, 0 or more, or leave empty.");
    need(most, count, "Enter a whole number, 0 or more, or leave empty.");
    if (whole(values[least]) && whole(values[most]) && values[least] > values[most]) wrong.set(least, "This is above the maximum.");
  }
  if (values["group.by"]) need("group.at_most", (value) => whole(value) && value >= 0, "Enter a whole number, 0 or more.");
  if (hasLimits(found, tasks, values) && !keepsLimits(found, values)) {
    wrong.set("base", `${strategyName(found, values)} does not support limits. Remove them below, or choose another strategy, such as MT-AVG.`);
  }
  return wrong;
}

const hasLimits = (found, tasks, values) =>
  Boolean(values["group.by"]) ||
  Object.keys(found.settings.limits.hours ?? {}).length > 0 ||
  tasks.some((task) => (values[limitField(task, "at_least")] || null) !== null || values[limitField(task, "at_most")] !== null);

/** The field that an error of the server is about, found by the setting it mentions. */
export function fieldOf(message, list, values) {
  const longest = (names) => names.sort((a, b) => b[0].length - a[0].length)[0]?.[1];
  const known = [...list.map(({ key, fields }) => [key.join("."), fields[0]])];
  for (const name of Object.keys(values)) {
    if (name.includes(".")) known.push([name.replace(/^group/, "limits.group"), name]);
    if (name.startsWith("price ")) known.push([`costs.${name.split(" ").slice(2).join(" ")}.${name.split(" ")[1]}`, name]);
    if (name.startsWith("at_")) known.push([`limits.tasks.${name.split(" ").slice(1).join(" ")}.${name.split(" ")[0]}`, name]);
  }
  const named = longest(known.filter(([place]) => message.includes(place)));
  if (named) return named;
  if (/allocation/.test(message)) return "split";
  if (/weight/.test(message)) return Object.keys(values).find((name) => name.startsWith("weight "));
  if (/strategy|scores/i.test(message)) return "base";
  return null;
}
