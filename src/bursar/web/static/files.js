// What was annotated, out; answers that were made elsewhere, in.

import { Api, Refused, SignedOut, Unreachable } from "./annotate/api.js";
import { el } from "./annotate/dom.js";

const api = new Api();
const told = document.getElementById("told");
const sentence = (words) => (words ? `${words[0].toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? "" : "."}` : "");

function say(words, kind = "good") {
  told.textContent = words;
  told.className = `notice ${kind}`;
  told.hidden = false;
  told.scrollIntoView({ block: "nearest" });
}

/** Do what a form asks for, once at a time; where it fails, say so. */
function onSubmit(form, work) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button[type=submit]");
    told.hidden = true;
    button.disabled = true;
    try {
      await work(new FormData(form));
    } catch (problem) {
      if (problem instanceof SignedOut) location.assign("/login?next=/files");
      say([sentence(problem.message), sentence(problem.fix)].filter(Boolean).join(" "), "wrong");
    } finally {
      button.disabled = false;
    }
  });
}

/** A call whose body or answer is a file; it may take as long as it takes. */
async function sendOrFetch(path, options = {}) {
  let reply;
  try {
    reply = await fetch(`/api${path}`, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Unreachable("The server cannot be reached");
  }
  if (reply.ok) return reply;
  if (reply.status === 401) throw new SignedOut("Nobody is signed in");
  throw new Refused(reply.status, await reply.json().catch(() => ({})));
}

// -- out -------------------------------------------------------------------------------------------------------------
const nameOf = (reply) => /filename="([^"]+)"/.exec(reply.headers.get("Content-Disposition") ?? "")?.[1] ?? "annotations";

function keep(file, name) {
  const link = el("a", { href: URL.createObjectURL(file), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

onSubmit(document.getElementById("export"), async (asked) => {
  const reply = await sendOrFetch(`/export?${new URLSearchParams(asked)}`);
  const name = nameOf(reply);
  keep(await reply.blob(), name);
  say(`${name} is in your downloads.`);
});

// -- in --------------------------------------------------------------------------------------------------------------
/** A file's name as the server takes it, which says no more than what format it may be of. */
const plain = (name) => name.normalize("NFKD").replace(/[^A-Za-z0-9_.-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "").slice(-100) || "file";

const counted = (count, words) => (count ? `${count.toLocaleString("en")} ${words}` : null);

function outcome({ answered, repeated, not_asked, incomplete, cost }) {
  const rest = [
    counted(repeated, "were there already"),
    counted(not_asked, "are not asked about now"),
    counted(incomplete, "lack a label for some task that is asked for"),
  ].filter(Boolean);
  const first = answered ? `${answered.toLocaleString("en")} item${answered === 1 ? " is" : "s are"} answered, for ${cost}.` : "No item is answered by this file.";
  return rest.length ? `${first} Of the others, ${rest.join("; ")}.` : first;
}

onSubmit(document.getElementById("import"), async (asked) => {
  const file = asked.get("file");
  const query = new URLSearchParams({ name: plain(file.name) });
  for (const name of ["format", "annotator"]) if (asked.get(name).trim()) query.set(name, asked.get(name).trim());
  await api.me(); // a token of now: the page may have been open for days
  const headers = { "Content-Type": "application/octet-stream", "X-CSRF-Token": api.csrf };
  const reply = await sendOrFetch(`/import?${query}`, { method: "POST", headers, body: file });
  const found = await reply.json();
  say(outcome(found), found.answered || found.repeated ? "good" : "");
});
