// Display texts of money, settings and errors.

import { count as many } from "../annotate/dom.js";
import { decimalsOf, errorText, moneyText } from "../format.js";

const SECTIONS = { budget: "Budget", costs: "Prices", strategy: "Strategy", limits: "Limits", allocation: "Split" };
const NAMES = {
  "budget.total": "Total budget",
  "budget.per_round": "Per round",
  "budget.rounds": "Rounds",
  "budget.patience": "Rounds without improvement",
  "budget.ahead": "Open share when the next round is trained",
  "costs.hourly": "Cost of an hour",
  "costs.measured": "Update prices from measured times",
  "costs.reserve": "Reserve for overruns",
  "strategy.name": "Strategy",
  "strategy.weights": "Task weights",
  "strategy.bins": "Bins by",
  "strategy.bin_count": "Number of bins",
  "limits.group.by": "Limit similar items by",
  "limits.group.at_most": "Items per group, at most",
  "allocation.method": "Budget split between tasks",
};
const SHARES = ["budget.ahead", "costs.reserve"];
const MONEY = ["budget.total", "budget.per_round", "costs.hourly"];

/** Formats money: currency first, two decimals, or more for small prices. */
export class Money {
  constructor({ unit, currency }, counts) {
    this.unit = Number(unit);
    this.currency = currency;
    this.byItem = counts === "items"; // the budget; prices are always money
    this.digits = decimalsOf(this.unit);
  }

  /** An amount, with all its decimals. */
  show(amount, digits = Math.min(2, this.digits)) {
    const most = Math.max(this.digits, Math.min(6, decimalsOf(amount)));
    return `${this.currency}${amount.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: most })}`;
  }

  /** An amount given in smallest units. */
  units = (count) => moneyText(count, this);
  /** An amount of the budget: money or items. */
  budget = (amount) => (this.byItem ? many(amount, "item") : this.show(amount));
  budgetUnits = (count) => (this.byItem ? many(count, "item") : this.units(count));
  /** Whether an amount is a multiple of the unit, and the nearest one that is. */
  payable = (amount) => Math.abs(amount / this.unit - Math.round(amount / this.unit)) < 1e-6;
  round = (amount) => Number((Math.round(amount / this.unit) * this.unit).toFixed(this.digits));
}

/** The name of a setting. */
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

/** The value of a setting as text. */
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
  if (place === "costs.hourly") return "not set";
  if (place === "budget.ahead") return "0 %";
  if (place === "costs.measured") return "no";
  if (key[1] === "weights") return "equal";
  if (key[0] === "allocation") return splitName("none");
  return "default";
}

/** The name of a way of spending. */
export const wayName = (spend) => ({ greedy: "highest scores", ratio: "highest score per price", exact: "highest total score" })[spend] ?? spend;

/** The name of a budget split method. */
export const splitName = (name) => (name === "none" ? "no" : name);

export function groupedBy(value) {
  if (value.startsWith("label:")) return `predicted label of ${value.slice(6)}`;
  return { length: "length", cluster: "cluster", group: "group" }[value] ?? value;
}

/** An error of the server, with settings named as in the form. */
export function settingError({ message, fix }, keys = []) {
  const renamed = (words) => keys.reduce((text, key) => text.replaceAll(key.join("."), nameOf(key)), (words ?? "").replace(/^the change: /, ""));
  return errorText({ message: renamed(message), fix: renamed(fix) });
}
