// The list of skipped items with their reasons; a lead can undo skips.

import { el } from "./annotate/dom.js";

const PAGE = 20;
const place = (id) => document.getElementById(id);
const day = (at) => new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
const roundName = (round) => (round === 0 ? "Seed items" : `Round ${round}`);

/** Fill the list of skips. `attempt` runs a call and shows errors, `notify` shows a message. */
export function showSkips({ api, attempt, itemParts, notify }) {
  const [list, all, more] = [place("skips"), place("all-skips"), place("more-skips")];
  let shown = 0; // number of skips shown

  function cardOf(skip) {
    const { key, item, tasks, person, reason, at, round, undone_by: by, undone_at: since } = skip;
    const ask = el("button", { class: "button", type: "button", on: { click: () => askAgain() } }, "Undo skip");
    const asked = by ? el("span", { class: "aside" }, "undone by ", el("bdi", {}, by), `, ${day(since)}`) : ask;
    const card = el(
      "article",
      { class: "card case skip" },
      el("div", { class: "top" }, el("span", { class: "mono" }, item.id), el("span", {}, `${roundName(round)} · ${tasks.join(", ")}`)),
      ...itemParts(item),
      el("p", { class: "reason" }, el("bdi", { class: "person" }, person), ", ", el("time", { datetime: at }, day(at)), ": ", el("q", { dir: "auto" }, reason)),
      el("div", { class: "foot" }, asked),
    );
    const askAgain = async () => {
      ask.disabled = true;
      const done = await attempt(() => api.call("POST", "/skips/undo", { skip: key }));
      ask.disabled = false;
      if (!done) return;
      notify(done.asked ? `Item ${item.id} is open again.` : `Item ${item.id} is back in the pool, because its round is closed.`);
      if (all.checked) return load();
      card.remove();
      shown -= 1;
      place("no-skips").hidden = shown > 0;
    };
    return card;
  }

  async function load(offset = 0) {
    const query = `which=${all.checked ? "all" : "open"}&limit=${PAGE}&offset=${offset}`;
    const found = await attempt(() => api.call("GET", `/skips?${query}`));
    if (!found) return;
    if (!offset) list.replaceChildren();
    list.append(...found.skips.map(cardOf));
    shown = offset + found.skips.length;
    more.hidden = shown >= found.total;
    place("no-skips").hidden = shown > 0;
  }

  all.addEventListener("change", () => load());
  more.addEventListener("click", () => load(shown));
  return load();
}
