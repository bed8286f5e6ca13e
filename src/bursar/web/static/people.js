// The people page: accounts and API tokens.

import { Api, SignedOut } from "./annotate/api.js";
import { el } from "./annotate/dom.js";
import { errorText, showNotice } from "./format.js";

const api = new Api();
const main = document.getElementById("main");
const me = main.dataset.me;
const accounts = main.dataset.accounts === "1";
const leads = main.dataset.leads === "1";
const notice = document.getElementById("notice");
const dialog = document.getElementById("ask");

const day = (at) => (at ? new Date(at).toLocaleDateString("en", { dateStyle: "medium" }) : "never");

function say(text, look) {
  showNotice(notice, text, look);
  notice.scrollIntoView({ block: "nearest" });
}

/** Run something and show its outcome, in place of the previous message. */
function attempt(work, done) {
  notice.hidden = true;
  return tried(work, done);
}

/** Run something and show an error if it fails. */
async function tried(work, done) {
  try {
    const found = await work();
    if (done) say(done);
    return found;
  } catch (problem) {
    if (problem instanceof SignedOut) location.assign("/login?next=/people");
    say(errorText(problem), "wrong");
    return null;
  }
}

/** Ask for confirmation. Resolves to the typed password, "" if none is asked for, or null if cancelled. */
function ask({ title, words = "", password = false, secret = null, yes = "Yes", no = "Cancel" }) {
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
  return new Promise((resolve) => {
    const closed = () => {
      resolve(dialog.returnValue === "yes" ? field.value : null);
      field.value = ""; // do not keep passwords or tokens in the page
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
    const password = await ask({ title: `New password for ${person.name}`, words: "Their sessions will end.", password: true, yes: "Set" });
    if (password !== null) await attempt(() => api.call("POST", `${path}/password`, { password }), `Password of ${person.name} changed.`);
  };
  const remove = async () => {
    const words = "They can no longer sign in. Their annotations stay.";
    if ((await ask({ title: `Remove the account of ${person.name}?`, words, yes: "Remove" })) === null) return;
    await attempt(() => api.call("DELETE", path), `Account of ${person.name} removed.`);
    await showPeople();
  };
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, el("bdi", {}, person.name), own ? el("span", { class: "aside" }, " (you)") : null),
    el("td", { "data-label": "Role" }, person.role === "lead" ? "Lead" : "Annotator"),
    el("td", { class: "number", "data-label": "Items answered" }, person.answers.toLocaleString("en")),
    el("td", { class: "number", "data-label": "Open items" }, person.holds.toLocaleString("en")),
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
  const made = await attempt(() => api.call("POST", "/people", body), `Added ${body.name}.`);
  if (!made) return;
  form.reset();
  if (!accounts) location.assign("/login?next=/people"); // from now on, everyone has to sign in
  else await showPeople();
});

document.getElementById("own-password")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.currentTarget;
  const { old, password } = Object.fromEntries(new FormData(form));
  const path = `/people/${encodeURIComponent(me)}/password`;
  if (await attempt(() => api.call("POST", path, { old, password }), "Password changed.")) form.reset();
});

document.getElementById("sign-out")?.addEventListener("click", async () => {
  if (await attempt(() => api.call("POST", "/logout", {}))) location.assign("/login");
});

// -- tokens ----------------------------------------------------------------------------------------------------------
function tokenRow(token) {
  const remove = async () => {
    const words = "Programs that use it will lose access.";
    if ((await ask({ title: "Remove this token?", words, yes: "Remove" })) === null) return;
    await attempt(() => api.call("DELETE", `/tokens/${encodeURIComponent(token.id)}`), "Token removed.");
    await showTokens();
  };
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, el("bdi", {}, token.label || "unnamed")),
    el("td", { "data-label": "Created" }, day(token.created_at)),
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
  await ask({ title: "Your token", words: "Copy it now. It is shown only once.", secret: made.token, yes: "Done", no: null });
  await showTokens();
});

await tried(() => api.me());
await Promise.all([showPeople(), showTokens()]);
