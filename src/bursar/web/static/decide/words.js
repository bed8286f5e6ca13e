// Money, settings and changes as a person says them.

const SECTIONS = { budget: "Money", costs: "Prices", strategy: "Strategy", limits: "Limits", allocation: "Split" };
const NAMES = {
  "budget.total": "Budget in all",
  "budget.per_round": "Per round",
  "budget.rounds": "Rounds",
  "budget.patience": "Rounds without a better score",
  "budget.ahead": "Open when the next round is trained",
  "costs.hourly": "An hour costs",
  "costs.measured": "Prices follow the measured seconds",
  "costs.reserve": "Kept back for overruns",
  "strategy.name": "Strategy",
  "strategy.weights": "Weights of tasks",
  "strategy.bins": "Alike by",
  "strategy.bin_count": "Bins",
  "limits.group.by": "Limit by group",
  "limits.group.at_most": "Items of one group, at most",
  "allocation.method": "Split between tasks",
};
const SHARES = ["budget.ahead", "costs.reserve"];
const MONEY = ["budget.total", "budget.per_round", "costs.hourly"];

export const sentence = (words) => (words ? `${words[0].toUpperCase()}${words.slice(1)}${/[.!?…]$/.test(words) ? "" : "."}` : "");
export const many = (count, one, more = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;

/** How money is written here: the currency before it, two digits, or as many as its smallest amount needs. */
export class Money {
  constructor({ unit, currency }, counts) {
    this.unit = Number(unit);
    this.currency = currency;
    this.byItem = counts === "items"; // the budget; prices are money all the same
    this.digits = digitsOf(this.unit);
  }

  /** An amount; of sums that stand under each other, each with all its digits. */
  show(amount, digits = Math.min(2, this.digits)) {
    const most = Math.max(this.digits, Math.min(6, digitsOf(amount)));
    return `${this.currency}${amount.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: most })}`;
  }

  /** Whole units. */
  units = (count) => this.show(Number((count * this.unit).toFixed(this.digits)), this.digits);
  /** An amount of the budget, which may be a number of items. */
  budget = (amount) => (this.byItem ? many(amount, "item") : this.show(amount));
  budgetUnits = (count) => (this.byItem ? many(count, "item") : this.units(count));
  /** Whether an amount can be paid, and the nearest one that can. */
  payable = (amount) => Math.abs(amount / this.unit - Math.round(amount / this.unit)) < 1e-6;
  round = (amount) => Number((Math.round(amount / this.unit) * this.unit).toFixed(this.digits));
}

function digitsOf(amount) {
  const [mantissa, exponent] = String(amount).split("e-");
  return (mantissa.split(".")[1]?.length ?? 0) + Number(exponent ?? 0);
}

/** The name of a setting, by its place. */
export function nameOf(key) {
  const place = key.join(".");
  if (NAMES[place]) return NAMES[place];
  const [section, ...rest] = key;
  if (section === "costs") return `Price of ${rest[0]} ${countedOf(rest[1])}`;
  if (section === "strategy" && rest[0] === "weights") return `Weight of ${rest.slice(1).join(".")}`;
  if (section === "limits" && rest[0] === "tasks") return `Labels of ${rest[1]}, ${rest[2] === "at_least" ? "at least" : "at most"}`;
  return `${SECTIONS[section] ?? section}: ${rest.join(".")}`;
}

export const countedOf = (key) => `per ${String(key ?? "").replace(/^per_/, "")}`;

/** The value of a setting, by its place. */
export function valueOf(key, value, money) {
  const place = key.join(".");
  if (value === null || value === undefined) return emptyOf(key);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (SHARES.includes(place)) return `${Number((100 * value).toFixed(2))} %`;
  if (place === "costs.hourly") return money.show(value);
  if (MONEY.includes(place)) return money.budget(value);
  if (key[0] === "costs" && typeof value === "number") return money.show(value);
  if (place === "strategy.bins" || place === "limits.group.by") return groupedBy(value);
  if (place === "strategy.weights") return Object.entries(value).map(([task, weight]) => `${task} ${weight}`).join(", ");
  if (place === "allocation.method") return splitName(value);
  if (key[0] === "limits" && key.at(-1) === "at_least" && value === 0) return emptyOf(key);
  return typeof value === "object" ? JSON.stringify(value) : typeof value === "number" ? value.toLocaleString("en") : String(value);
}

function emptyOf(key) {
  const place = key.join(".");
  if (place === "budget.total" || place === "budget.patience" || key[0] === "limits") return "no limit";
  if (place === "costs.hourly") return "not said";
  if (place === "budget.ahead") return "0 %";
  if (place === "costs.measured") return "no";
  if (key[1] === "weights") return "alike";
  if (key[0] === "allocation") return splitName("none");
  return "as usual";
}

/** A way of spending, by what comes first. */
export const wayName = (spend) => ({ greedy: "highest scores", ratio: "most score for its price", exact: "best sum of scores" })[spend] ?? spend;

/** A way to split money between tasks. */
export const splitName = (name) => (name === "none" ? "no" : name);

export function groupedBy(value) {
  if (value.startsWith("label:")) return `predicted label of ${value.slice(6)}`;
  return { length: "length", cluster: "what the model finds alike", group: "group" }[value] ?? value;
}

/** A refusal of the server in the words of the form, where it names settings as a file does. */
export function told({ message, fix }, keys = []) {
  const plain = (words) => keys.reduce((said, key) => said.replaceAll(key.join("."), nameOf(key)), words.replace(/^the change: /, ""));
  return [message, fix].filter(Boolean).map((words) => sentence(plain(words))).join(" ");
}
