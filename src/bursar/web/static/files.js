// The files page: export annotations, download labelled data, import answers.

import { Api, Refused, SignedOut, Unreachable } from "./annotate/api.js";
import { count, el } from "./annotate/dom.js";
import { errorText, showNotice } from "./format.js";
import { fileOf, labelledData } from "./labelled.js";

const api = new Api();
const notice = document.getElementById("notice");

function say(text, look) {
  showNotice(notice, text, look);
  notice.scrollIntoView({ block: "nearest" });
}

/** Handle the submission of a form, one at a time, and show errors. */
function onSubmit(form, work) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button[type=submit]");
    notice.hidden = true;
    button.disabled = true;
    try {
      await work(new FormData(form));
    } catch (problem) {
      if (problem instanceof SignedOut) location.assign("/login?next=/files");
      say(errorText(problem), "wrong");
    } finally {
      button.disabled = false;
    }
  });
}

/** A call whose request or response is a file, without a time limit. */
async function transfer(path, options = {}) {
  let reply;
  try {
    reply = await fetch(`/api${path}`, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Unreachable("The server cannot be reached");
  }
  if (reply.ok) return reply;
  if (reply.status === 401) throw new SignedOut("You are not signed in");
  throw new Refused(reply.status, await reply.json().catch(() => ({})));
}

// -- export ------------------------------------------------------------------------------------------------------------
const nameOf = (reply) => /filename="([^"]+)"/.exec(reply.headers.get("Content-Disposition") ?? "")?.[1] ?? "annotations";

function download(file, name) {
  const link = el("a", { href: URL.createObjectURL(file), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

onSubmit(document.getElementById("export"), async (asked) => {
  const reply = await transfer(`/export?${new URLSearchParams(asked)}`);
  const name = nameOf(reply);
  download(await reply.blob(), name);
  say(`Downloaded ${name}.`);
});

// -- labelled data -----------------------------------------------------------------------------------------------------
const labelled = labelledData(api, document.getElementById("labelled"));

onSubmit(document.getElementById("labelled"), async () => {
  const job = await labelled();
  const { result } = job;
  el("a", { href: fileOf(job), download: result.file }).click();
  say(`Downloaded ${result.file}: ${count(result.items, "item")}.`);
});

// -- import------------------------------------------------------------------------------------------------------------
/** A file name that the server accepts; it is used to detect the format. */
const plain = (name) => name.normalize("NFKD").replace(/[^A-Za-z0-9_.-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "").slice(-100) || "file";

const counted = (number, words) => (number ? `${number.toLocaleString("en")} ${words}` : null);

function outcome({ answered, repeated, not_asked, incomplete, cost }) {
  const rest = [
    counted(repeated, "already imported"),
    counted(not_asked, "not open in this round"),
    counted(incomplete, "without a label for every requested task"),
  ].filter(Boolean);
  const first = answered ? `Imported ${count(answered, "answer")}, for ${cost}.` : "No answers were imported.";
  return rest.length ? `${first} Other items: ${rest.join(", ")}.` : first;
}

onSubmit(document.getElementById("import"), async (asked) => {
  const file = asked.get("file");
  const query = new URLSearchParams({ name: plain(file.name) });
  for (const name of ["format", "annotator"]) if (asked.get(name).trim()) query.set(name, asked.get(name).trim());
  await api.me(); // a fresh token: the page may have been open for days
  const headers = { "Content-Type": "application/octet-stream", "X-CSRF-Token": api.csrf };
  const reply = await transfer(`/import?${query}`, { method: "POST", headers, body: file });
  const found = await reply.json();
  say(outcome(found), found.answered || found.repeated ? "good" : "");
});
