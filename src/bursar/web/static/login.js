// The sign-in page. After signing in, it opens the page that was requested.

import { sentence } from "./format.js";

const form = document.getElementById("sign-in");
const wrong = document.getElementById("wrong");
const button = form.querySelector("button");

/** The page to open: always on this server. */
function destination() {
  const wanted = new URLSearchParams(location.search).get("next") ?? "/";
  try {
    const url = new URL(wanted, location.origin);
    return wanted.startsWith("/") && url.origin === location.origin ? url.pathname + url.search : "/";
  } catch {
    return "/";
  }
}

function say(words) {
  wrong.textContent = words;
  wrong.hidden = false;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  wrong.hidden = true;
  button.disabled = true;
  const { name, password } = Object.fromEntries(new FormData(form));
  try {
    const reply = await fetch("/api/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ name, password }),
      credentials: "same-origin",
    });
    if (reply.ok) {
      location.replace(destination());
      return;
    }
    const { error, fix, kind } = await reply.json().catch(() => ({}));
    if (kind === "no_accounts") location.replace("/");
    const words = sentence(error ?? "sign-in failed");
    say(reply.status === 429 ? `${words} ${sentence(fix)}` : words);
    form.password.select();
  } catch {
    say("The server cannot be reached.");
  } finally {
    button.disabled = false;
  }
});
