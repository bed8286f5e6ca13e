// Accounts and tokens.

import { Api, SignedOut } from "./annotate/api.js";
import { el } from "./annotate/dom.js";

const api = new Api();
const main = document.getElementById("main");
const me = main.dataset.me;
const accounts = main.dataset.accounts === "1";
const leads = main.dataset.leads === "1";
const told = document.getElementById("told");
const dialog = document.getElementById("ask");

const day = (at) => (at ? new Date(at).toLocaleDateString("en", { dateStyle: "medium" }) : "never");

function say(words, kind = "good") {
  told.textContent = words;
  told.className = `notice ${kind}`;
  told.hidden = false;
  told.scrollIntoView({ block: "nearest" });
}

/** Do something and say what came of it, in the place of what was said before. */
function attempt(work, done) {
  told.hidden = true;
  return tried(work, done);
}

/** Do something; where it fails, say so. */
async function tried(work, done) {
  try {
    const found = await work();
    if (done) say(done);
    return found;
  } catch (problem) {
    if (problem instanceof SignedOut) location.assign("/login?next=/people");
    const fix = problem.fix ? ` ${problem.fix[0].toUpperCase()}${problem.fix.slice(1)}.` : "";
    const words = problem.message || "That did not work";
    say(`${words[0].toUpperCase()}${words.slice(1)}.${fix}`, "wrong");
    return null;
  }
}

/** Ask before something is done; gives the password that was typed, "" where none is asked for, or null. */
function ask({ title, words = "", password = false, secret = null, yes = "Yes", no = "Leave it" }) {
  document.getElementById("ask-title").textContent = title;
  document.getElementById("ask-words").textContent = words;
  document.getElementById("ask-field").hidden = !password;
  document.getElementById("ask-secret").hidden = secret === null;
  document.getElementById("ask-secret").textContent = secret ?? "";
  document.getElementById("ask-yes").textContent = yes;
  document.getElementById("ask-no").hidden = no === null;
  document.getElementById("ask-no").textContent = no ?? "";
  const field = dialog.querySelector("input[name=password]");
  field.value = "";
  field.required = password;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((tell) => {
    const closed = () => {
      tell(dialog.returnValue === "yes" ? field.value : null);
      field.value = ""; // neither a password nor a token stays in the page
      document.getElementById("ask-secret").textContent = "";
    };
    dialog.addEventListener("close", closed, { once: true });
  });
}

// -- people ----------------------------------------------------------------------------------------------------------
function personRow(person) {
  const own = person.name === me;
  const path = `/people/${encodeURIComponent(person.name)}`;
  const renew = async () => {
    const password = await ask({ title: `A new password for ${person.name}`, words: "Their sessions end.", password: true, yes: "Set" });
    if (password !== null) await attempt(() => api.call("POST", `${path}/password`, { password }), `${person.name} has a new password.`);
  };
  const remove = async () => {
    const words = "They can no longer sign in. What they annotated stays.";
    if ((await ask({ title: `Take ${person.name}’s account away?`, words, yes: "Take it away" })) === null) return;
    await attempt(() => api.call("DELETE", path), `${person.name} has no account any more.`);
    await showPeople();
  };
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, el("bdi", {}, person.name), own ? el("span", { class: "aside" }, " you") : null),
    el("td", { "data-label": "Role" }, person.role === "lead" ? "Lead" : "Annotator"),
    el("td", { class: "number", "data-label": "Items answered" }, person.answers.toLocaleString("en")),
    el("td", { class: "number", "data-label": "Before them now" }, person.holds.toLocaleString("en")),
    el("td", { "data-label": "Since" }, day(person.created_at)),
    el(
      "td",
      { class: "actions" },
      own ? null : el("button", { class: "button small quiet", type: "button", on: { click: renew } }, "New password"),
      own ? null : el("button", { class: "button small quiet danger", type: "button", on: { click: remove } }, "Remove"),
    ),
  );
}

async function showPeople() {
  if (!leads || !accounts) return;
  const found = await tried(() => api.call("GET", "/people"));
  if (found) document.getElementById("rows").replaceChildren(...found.people.map(personRow));
}

document.getElementById("new-person")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.currentTarget;
  const body = Object.fromEntries(new FormData(form));
  const made = await attempt(() => api.call("POST", "/people", body), `${body.name} can sign in now.`);
  if (!made) return;
  form.reset();
  if (!accounts) location.assign("/login?next=/people"); // from now on everybody signs in
  else await showPeople();
});

document.getElementById("own-password")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.currentTarget;
  const { old, password } = Object.fromEntries(new FormData(form));
  const path = `/people/${encodeURIComponent(me)}/password`;
  if (await attempt(() => api.call("POST", path, { old, password }), "You have a new password.")) form.reset();
});

document.getElementById("sign-out")?.addEventListener("click", async () => {
  if (await attempt(() => api.call("POST", "/logout", {}))) location.assign("/login");
});

// -- tokens ----------------------------------------------------------------------------------------------------------
function tokenRow(token) {
  const remove = async () => {
    const words = "The program that has it can do nothing any more.";
    if ((await ask({ title: "Take this token away?", words, yes: "Take it away" })) === null) return;
    await attempt(() => api.call("DELETE", `/tokens/${encodeURIComponent(token.id)}`), "The token is gone.");
    await showTokens();
  };
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, el("bdi", {}, token.label || "no name")),
    el("td", { "data-label": "Made" }, day(token.created_at)),
    el("td", { "data-label": "Last used" }, day(token.used_at)),
    el("td", { class: "actions" }, el("button", { class: "button small quiet danger", type: "button", on: { click: remove } }, "Remove")),
  );
}

async function showTokens() {
  const found = await tried(() => api.call("GET", "/tokens"));
  if (!found) return;
  document.getElementById("token-rows").replaceChildren(...found.tokens.map(tokenRow));
  document.getElementById("token-frame").hidden = !found.tokens.length;
}

document.getElementById("new-token").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.currentTarget;
  const made = await attempt(() => api.call("POST", "/tokens", Object.fromEntries(new FormData(form))));
  if (!made) return;
  form.reset();
  await ask({ title: "Your token", words: "Copy it now: it is shown this once.", secret: made.token, yes: "I have it", no: null });
  await showTokens();
});

await tried(() => api.me());
await Promise.all([showPeople(), showTokens()]);
