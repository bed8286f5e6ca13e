// The settings form: every field shows its current value if changed, and its error if invalid.

import { button, count as many, el } from "../annotate/dom.js";
import { sentence } from "../format.js";
import { canSplit, limitField, priceField, spendingsFor, strategyOf, weightField } from "./model.js";
import { countedOf, groupedBy, splitName, wayName } from "./words.js";

let counter = 0;

export class Form {
  constructor(root, changed) {
    this.root = root;
    this.changed = changed;
    this.fields = new Map(); // by name: input, box, notes
  }

  /** Rebuild all fields, keeping the focus. */
  build(found, tasks, money, state) {
    Object.assign(this, { found, tasks, money, state });
    const focused = document.activeElement?.dataset?.field;
    const folds = [...this.root.querySelectorAll("details")].map((details) => details.open);
    this.fields.clear();
    this.root.replaceChildren(this.moneyPart(), this.strategyPart(), this.pricesPart(), this.limitsPart());
    [...this.root.querySelectorAll("details")].forEach((details, at) => (details.open = folds[at] ?? false));
    this.root.removeAttribute("aria-busy");
    if (focused) this.fields.get(focused)?.input.focus();
  }

  /** Update the state and the measured times, which change while people annotate. */
  follow(found, state) {
    Object.assign(this, { found, state });
  }

  // -- fields ----------------------------------------------------------------------------------------------------------
  /** A field with its label, hint, current value if changed, and error. */
  field(name, label, { input = null, hint = null, before = null, after = null, look = "", ...attributes } = {}) {
    const id = `field-${(counter += 1)}`;
    const control = input ?? el("input", { type: "number", inputmode: "decimal", step: "any", ...attributes });
    for (const [key, value] of Object.entries({ id, "data-field": name, "aria-describedby": `${id}-notes` })) control.setAttribute(key, value);
    const tick = control.type === "checkbox";
    const [was, wrong, note] = ["was", "wrong", "hint"].map((look) => el("small", { class: look }));
    note.textContent = hint ?? "";
    const notes = el("span", { class: "notes", id: `${id}-notes` }, wrong, was, note);
    const unit = (text) => (text ? el("span", { class: "unit", "aria-hidden": "true" }, text) : null);
    const row = before || after ? el("span", { class: "with-unit" }, unit(before), control, unit(after)) : control;
    const title = el("label", { for: id }, label);
    const box = el("div", { class: `setting ${tick ? "ticked" : ""} ${look}` }, tick ? row : title, tick ? title : row, notes);
    this.fields.set(name, { input: control, box, was, wrong, note });
    control.addEventListener("input", () => this.changed(name, read(control)));
    return box;
  }

  choice(name, label, options, more = {}) {
    const input = el("select", {}, ...options.map(([value, text]) => el("option", { value }, text)));
    return this.field(name, label, { input, ...more });
  }

  tick = (name, label, more = {}) => this.field(name, label, { input: el("input", { type: "checkbox" }), ...more });

  part(title, words, ...children) {
    const id = `part-${(counter += 1)}`;
    const intro = typeof words === "string" ? el("p", { class: "aside" }, words) : words;
    return el("section", { class: "card part", "aria-labelledby": id }, el("h2", { id }, title), intro, ...children);
  }

  // -- money -----------------------------------------------------------------------------------------------------------
  moneyPart() {
    const unit = this.money.byItem ? { after: "items" } : { before: this.money.currency };
    this.spent = el("p", { class: "aside" });
    return this.part(
      "Budget",
      this.money.byItem ? "The budget counts items." : "How much may be spent in total and per round. What a round does not spend is added to the next.",
      el(
        "div",
        { class: "fields three" },
        this.field("budget.total", "Total budget", { ...unit, min: 0, placeholder: "no limit" }),
        this.field("budget.per_round", "Per round", { ...unit, min: 0 }),
        this.field("budget.rounds", "Rounds", { min: 0, step: 1, inputmode: "numeric" }),
      ),
      this.spent,
      el(
        "details",
        { class: "more" },
        el("summary", {}, "Stopping and training ahead"),
        el(
          "div",
          { class: "fields two" },
          this.field("budget.patience", "Stop after rounds without improvement", { min: 1, step: 1, inputmode: "numeric", placeholder: "never" }),
          this.field("budget.ahead", "Train the next round when this share is open", { min: 0, max: 99, after: "%", hint: "0: train when all items are answered." }),
        ),
      ),
    );
  }

  // -- prices ----------------------------------------------------------------------------------------------------------
  pricesPart() {
    const { prices, settings } = this.found;
    const currency = { before: this.money.currency };
    const rows = Object.entries(prices.stated).flatMap(([what, own]) => Object.keys(own).map((per) => [what, per]));
    this.made = new Map(); // by field: the priced thing, and the element of its measured seconds
    const table = el(
      "div",
      { class: "prices", role: "group", "aria-label": "Prices" },
      ...rows.map(([what, per], at) => {
        const label = [el("bdi", { class: "what" }, what === "reading" ? "Reading" : what), el("span", { class: "per" }, ` ${countedOf(per)}`)];
        const first = at === 0 || rows[at - 1][0] !== what;
        const box = this.field(priceField(what, per), label, { ...currency, min: 0, look: first ? "price first" : "price" });
        const place = el("span", { class: "makes" });
        box.append(place);
        this.made.set(priceField(what, per), { what, per, place });
        return box;
      }),
    );
    this.timed = el("p", { class: "aside" });
    this.take = button("button small", () => this.takeMeasured(), {}, "Use measured prices");
    this.coarse = el("p", { class: "aside" });
    const reserve = { after: "%", min: 0, hint: "Prices are predicted before items are answered." };
    return this.part(
      "Prices",
      this.timed,
      table,
      el(
        "div",
        { class: "fields two" },
        this.field("costs.hourly", "Cost of an hour of annotation", { ...currency, min: 0, placeholder: "not set" }),
        settings.costs.pricing === "predicted" ? this.field("costs.reserve", "Reserve for overruns", reserve) : null,
      ),
      el("div", { class: "row measured" }, this.take, this.coarse),
      this.tick("costs.measured", "Update prices from measured times every round"),
    );
  }

  /** The measured seconds for a field; null if there are none. */
  secondsOf({ what, per }) {
    const rate = this.found.pace[what];
    if (!rate?.observations) return null;
    return per === "per_item" ? rate.per_item : rate.per_count;
  }

  /** Prices from the measured seconds at an hourly cost. */
  measuredPrices(hourly) {
    const known = [...this.made].map(([name, about]) => [name, this.secondsOf(about)]).filter(([, seconds]) => seconds !== null);
    return Object.fromEntries(known.map(([name, seconds]) => [name, this.money.round((seconds * hourly) / 3600)]));
  }

  takeMeasured() {
    const hourly = read(this.fields.get("costs.hourly").input);
    if (typeof hourly !== "number" || !(hourly > 0)) {
      this.wrong("costs.hourly", "Enter the cost of an hour first.");
      this.focus("costs.hourly");
      return;
    }
    for (const [name, price] of Object.entries(this.measuredPrices(hourly))) this.changed(name, price, true);
  }

  showMeasured(values) {
    const hourly = values["costs.hourly"];
    const paid = typeof hourly === "number" && hourly > 0;
    const makes = paid ? this.measuredPrices(hourly) : {};
    for (const [name, about] of this.made) {
      const seconds = this.secondsOf(about);
      about.place.textContent = seconds === null ? "not measured" : `${seconds.toFixed(1)} s${paid ? ` → ${this.money.show(makes[name])}` : ""}`;
      about.place.classList.toggle("none", seconds === null);
    }
    const timed = Math.max(0, ...Object.values(this.found.pace).map((rate) => rate.observations));
    this.timed.textContent = timed ? `Next to each price: the time measured in ${many(timed, "answer")}.` : "No times have been measured yet. They will appear next to each price.";
    this.take.disabled = !timed;
    const second = paid ? (this.money.unit * 3600) / hourly : 0;
    const coarse = `Prices are rounded to ${this.money.show(this.money.unit)}, which is ${second.toFixed(1)} s at this rate.`;
    this.coarse.textContent = !timed ? "" : !paid ? "Enter the cost of an hour to convert times to prices." : second > 0.5 ? coarse : "";
  }

  // -- strategy --------------------------------------------------------------------------------------------------------
  strategyPart() {
    const { strategies, bins } = this.found.choices;
    const option = ({ name }) => el("option", { value: name }, name);
    const groups = [
      ["All tasks", strategies.filter((one) => one.task === null && one.model)],
      ["Without a model", strategies.filter((one) => one.task === null && !one.model)],
      ...this.tasks.map((task) => [`Only ${task}`, strategies.filter((one) => one.task === task)]),
    ];
    const select = el("select", {}, ...groups.map(([label, members]) => el("optgroup", { label }, ...members.map(option))));
    if (!strategyOf(this.found, this.found.choices.strategy.base)) select.prepend(el("option", { value: this.found.choices.strategy.base }, this.found.choices.strategy.base));
    const spending = el("select", {}, ...this.found.choices.spendings.map((way) => el("option", { value: way.name }, `${wayName(way.spend)} (${way.name})`)));
    const weights = el("div", { class: "weights" }, ...this.tasks.map((task) => this.weight(task)));
    const words = el("p", { class: "aside" }, "Only the ratios matter.");
    this.weighing = el("div", { class: "weighing", role: "group", "aria-label": "Task weights" }, el("h3", {}, "Task weights"), words, weights);
    const { splits } = this.found.choices;
    this.splitting = el("div", { class: "fields two" }, splits.length ? this.choice("split", "Split the budget between tasks", splits.map(({ name }) => [name, splitName(name)]), { hint: " " }) : null);
    this.matched = el(
      "div",
      { class: "fields two" },
      this.choice("strategy.bins", "Bins by", bins.map((value) => [value, groupedBy(value)])),
      this.field("strategy.bin_count", "Number of bins", { min: 1, step: 1, inputmode: "numeric" }),
    );
    return this.part(
      "Strategy",
      "How items are selected.",
      el("div", { class: "fields two top" }, this.field("base", "Strategy", { input: select, hint: " " }), this.field("spending", "Spend on", { input: spending, hint: " " })),
      this.weighing,
      this.splitting,
      this.tick("matching", "Match the distribution of the pool (IDMR)", { hint: "Selects from every bin in proportion to its size in the pool." }),
      this.matched,
    );
  }

  weight(task) {
    const name = weightField(task);
    const box = this.field(name, el("bdi", {}, task), { min: 0, look: "weight" });
    const slider = el("input", { type: "range", min: 0, max: 2, step: 0.05, "aria-label": `Weight of ${task}`, "data-slider": task });
    const share = el("span", { class: "share" });
    slider.addEventListener("input", () => this.changed(name, Number(slider.value), true));
    box.querySelector("label").after(slider);
    box.querySelector(".notes").before(share);
    Object.assign(this.fields.get(name), { slider, share });
    return box;
  }

  showStrategy(values) {
    const known = strategyOf(this.found, values.base);
    const open = spendingsFor(this.found, values.base).map(({ name }) => name);
    const { input, note } = this.fields.get("spending");
    for (const choice of input.options) choice.hidden = choice.disabled = !open.includes(choice.value);
    const way = this.found.choices.spendings.find(({ name }) => name === (open.includes(values.spending) ? values.spending : open[0]));
    if (way) input.value = way.name;
    note.textContent = known && !known.scores ? "This strategy gives no scores, so there is only one way to spend." : sentence(way?.about ?? "");
    this.fields.get("base").note.textContent = sentence(known?.about ?? "");
    this.weighing.hidden = !known?.weighted;
    this.showWeights(values);
    this.showSplit(values);
    this.fields.get("matching").input.disabled = known ? !known.matches : false;
    this.matched.hidden = !values.matching || (known && !known.matches);
  }

  showWeights(values) {
    const all = this.tasks.reduce((sum, task) => sum + (Number(values[weightField(task)]) || 0), 0);
    for (const task of this.tasks) {
      const { slider, share } = this.fields.get(weightField(task));
      const value = Number(values[weightField(task)]) || 0;
      slider.max = Math.max(2, Number(slider.max), Math.ceil(value));
      slider.value = value;
      share.textContent = all > 0 ? `${Math.round((100 * value) / all)} %` : "–";
    }
  }

  showSplit(values) {
    const split = this.fields.get("split");
    if (!split) return;
    const possible = canSplit(this.found, values);
    split.input.disabled = !possible;
    if (!possible) split.input.value = "none";
    const about = this.found.choices.splits.find(({ name }) => name === split.input.value)?.about ?? "";
    const others = this.found.choices.strategies.filter((one) => one.splits).map(({ name }) => name);
    split.note.textContent = possible ? sentence(about) : `${values.base} selects items for all tasks at once. To split the budget, use ${others.join(", ")}.`;
  }

  // -- limits ----------------------------------------------------------------------------------------------------------
  limitsPart() {
    const { groups } = this.found.choices;
    const hours = Object.keys(this.found.settings.limits.hours ?? {});
    const whole = { min: 0, step: 1, inputmode: "numeric", placeholder: "no limit" };
    return this.part(
      "Limits",
      "Limits per round on labels and items, in addition to the budget.",
      ...this.tasks.map((task) =>
        el(
          "div",
          { class: "fields two limit", role: "group", "aria-label": `Labels of ${task}` },
          this.field(limitField(task, "at_least"), ["Labels of ", el("bdi", {}, task), ", at least"], { ...whole }),
          this.field(limitField(task, "at_most"), ["Labels of ", el("bdi", {}, task), ", at most"], { ...whole }),
        ),
      ),
      groups.length
        ? el(
            "div",
            { class: "fields two limit" },
            this.choice("group.by", "Limit similar items by", [["", "none"], ...groups.map((value) => [value, groupedBy(value)])]),
            this.field("group.at_most", "Items per group, at most", { ...whole, placeholder: "a number" }),
          )
        : null,
      hours.length ? el("p", { class: "aside" }, `Hours of ${hours.join(", ")} are also limited. Use the API to change that.`) : null,
    );
  }

  // -- showing ---------------------------------------------------------------------------------------------------------
  /** Write values into the fields, except the one being edited. */
  show(values, shown, typing = null) {
    for (const [name, { input }] of this.fields) {
      if (name === typing) continue;
      const value = values[name];
      if (input.type === "checkbox") input.checked = Boolean(value);
      else input.value = value === null || value === undefined || Number.isNaN(value) ? "" : String(value);
    }
    for (const [name, { box, was }] of this.fields) {
      const changed = JSON.stringify(values[name] ?? null) !== JSON.stringify(shown[name] ?? null);
      box.classList.toggle("changed", changed);
      was.textContent = changed && !["base", "spending", "matching"].includes(name) ? `Current: ${this.inForce(name, shown[name])}` : "";
    }
    this.showStrategy(values);
    this.showMeasured(values);
    this.showSums(values);
    const group = this.fields.get("group.at_most");
    if (group) group.input.disabled = !values["group.by"];
  }

  inForce(name, value) {
    if (value === null || value === undefined || value === "") return "none";
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (name.startsWith("price ") || name === "costs.hourly") return this.money.show(value);
    if (name === "budget.total" || name === "budget.per_round") return this.money.budget(value);
    if (name === "budget.ahead" || name === "costs.reserve") return `${value} %`;
    if (name === "split") return splitName(value);
    return typeof value === "string" ? groupedBy(value) : value.toLocaleString("en");
  }

  /** Show what the budget fields add up to. */
  showSums(values) {
    const { money, state } = this;
    const [total, each, rounds] = ["total", "per_round", "rounds"].map((key) => values[`budget.${key}`]);
    const exact = (amount) => money.budget(Number(amount.toFixed(6)));
    const spent = state.spent * (money.byItem ? 1 : money.unit);
    const left = typeof total === "number" && total > 0 ? total - spent : Infinity;
    const more = (rounds - state.round) * each;
    const parts = [`${money.budgetUnits(state.spent)} ${money.byItem ? "answered" : "spent"} so far.`];
    if (left <= 0) parts.push("The total budget is already spent: the campaign would end.");
    else if (Number.isInteger(rounds) && rounds >= 0 && rounds <= state.round && state.round > 0) {
      if (state.phase !== "ended") parts.push(`Round ${state.round} would be the last.`);
    } else if (more > 0) {
      const saved = state.round > 0 ? ", plus what earlier rounds did not spend" : "";
      const most = left < more ? `, but only ${exact(left)} of the total budget is left` : saved;
      parts.push(`${many(rounds - state.round, "more round")} of ${money.budget(each)} can spend ${exact(more)}${most}.`);
    }
    this.spent.textContent = parts.join(" ");
    this.spent.classList.toggle("caution", left <= 0);
  }

  /** Show an error next to its field; returns false if the field is not visible. */
  wrong(name, words) {
    const field = this.fields.get(name);
    if (!field) return false;
    field.wrong.textContent = words;
    field.box.classList.toggle("is-wrong", Boolean(words));
    field.input.setAttribute("aria-invalid", String(Boolean(words)));
    const folded = field.box.closest("details");
    if (words && folded) folded.open = true;
    return field.input.offsetParent !== null;
  }

  wrongs(mistakes) {
    for (const name of this.fields.keys()) this.wrong(name, mistakes.get(name) ?? "");
  }

  focus = (name) => this.fields.get(name)?.input.focus();
}

/** The value of a control: a number, null, or a choice; NaN if it is not a valid number. */
export function read(control) {
  if (control.type === "checkbox") return control.checked;
  if (control.type !== "number") return control.value;
  if (control.validity.badInput) return Number.NaN;
  return control.value.trim() === "" ? null : Number(control.value);
}
