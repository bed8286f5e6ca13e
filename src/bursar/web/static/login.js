// Signing in: the cookie comes with the answer, and then one goes where one wanted to go.

const form = document.getElementById("sign-in");
const wrong = document.getElementById("wrong");
const button = form.querySelector("button");

/** Where to go on: only ever a page of ours. */
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
    const sentence = error ? `${error[0].toUpperCase()}${error.slice(1)}.` : "That did not work.";
    say(reply.status === 429 ? `${sentence} ${fix[0].toUpperCase()}${fix.slice(1)}.` : sentence);
    form.password.select();
  } catch {
    say("The server cannot be reached.");
  } finally {
    button.disabled = false;
  }
});
