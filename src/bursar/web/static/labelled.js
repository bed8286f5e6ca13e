// Labelled data: asks for a file, shows the progress, then how many errors to expect.

import { Refused } from "./annotate/api.js";
import { el } from "./annotate/dom.js";
import { sentence } from "./format.js";

const POLL = 500; // milliseconds between two requests for the progress
const pause = () => new Promise((resolve) => setTimeout(resolve, POLL));
const percent = (share) => `${Math.round(100 * share)} %`;

/** What the form asks for. */
function wanted(form) {
  const ticked = (name) => [...form.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value);
  const given = [...form.querySelectorAll("[name=threshold]")].filter((input) => input.value !== "");
  const thresholds = Object.fromEntries(given.map((input) => [input.dataset.task, Number(input.value)]));
  const tasks = ticked("tasks");
  if (form.querySelector("[name=tasks]") && !tasks.length) throw new Refused(400, { error: "no task is ticked", fix: "tick one" });
  const lose = form.querySelector("#labelled-lose").hidden ? [] : ticked("lose");
  return { format: form.elements.format.value, thresholds, tasks, lose };
}

/** The errors to expect of one task, at several thresholds. */
function ladder(task, steps) {
  const rows = steps
    .filter((step) => step.above)
    .map(({ threshold, share, words }) => [threshold, percent(share), /([\d.]+ % \([^)]*\)) errors/.exec(words)?.[1] ?? ""]);
  if (!rows.length) return null;
  const head = el("tr", {}, ...["Threshold", "Items", "Errors"].map((name) => el("th", { class: "number", scope: "col" }, name)));
  const body = rows.map((cells) => el("tr", {}, ...cells.map((cell) => el("td", { class: "number" }, String(cell)))));
  return el("details", {}, el("summary", {}, `${task}: other thresholds`), el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
}

/** Where the file of a finished job is. */
export const fileOf = ({ job }) => `/api/predictions/${job}/file`;

function shown(job) {
  const { file, model, accepted, thresholds } = job.result;
  const lines = accepted.map(({ words }) => el("li", {}, words));
  const ladders = Object.entries(thresholds).map(([task, steps]) => ladder(task, steps));
  return [
    el("p", {}, `Labels by ${model}, where people gave none:`),
    el("ul", {}, ...lines),
    ...ladders.filter(Boolean),
    el("p", {}, el("a", { href: fileOf(job), download: file }, `Download ${file} again`)),
  ];
}

/** Prepare the form. Returns a function that asks for the file and resolves to the finished job. */
export function labelledData(api, form) {
  const [progress, found, lose] = ["progress", "found", "lose"].map((name) => form.querySelector(`#labelled-${name}`));
  const tables = form.querySelector("optgroup");
  const offerLosses = () => {
    lose.hidden = tables.contains(form.elements.format.selectedOptions[0]);
  };
  form.elements.format.addEventListener("change", offerLosses);
  offerLosses();

  /** Wait for a job and show its result. */
  async function follow(job) {
    progress.hidden = false;
    try {
      while (!job.done) {
        progress.querySelector("progress").value = job.progress;
        progress.querySelector("span").textContent = job.what ? `${sentence(job.what).slice(0, -1)}: ${percent(job.progress)}` : "Starting";
        await pause();
        job = await api.call("GET", `/predictions/${job.job}`);
      }
    } finally {
      progress.hidden = true;
    }
    if (job.wrong) throw new Refused(400, job.wrong);
    found.replaceChildren(...shown(job));
    found.hidden = false;
    return job;
  }

  api
    .call("GET", "/predictions") // of another visit
    .then(({ predictions }) => predictions && !predictions.wrong && follow(predictions))
    .catch(() => {}); // the form works without it

  return async () => {
    const asked = wanted(form);
    found.hidden = true;
    await api.me(); // a fresh token: the page may have been open for days
    return follow(await api.call("POST", "/predictions", asked));
  };
}
