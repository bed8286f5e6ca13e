// Calls to the server. A call can fail in three ways, each with its own error class.

const TIMEOUT = 20000; // milliseconds

/** The server cannot be reached or cannot answer now: the call may succeed later. */
export class Unreachable extends Error {
  constructor(message, after = null, kind = "") {
    super(message);
    this.after = after; // seconds, if the server gave them
    this.kind = kind;
  }

  get storage() {
    return this.kind === "storage_unavailable";
  }

  /** Seconds before the next try: longer each time, and at least what the server asked for. */
  pause(pauses, tries) {
    return Math.max(this.after ?? 0, pauses[Math.min(tries, pauses.length - 1)]);
  }
}

/** The session has ended. */
export class SignedOut extends Error {}

/** The server refused the request; repeating it would not help. */
export class Refused extends Error {
  constructor(status, { error, fix, kind } = {}) {
    super(error ?? `The server refused the request (${status}).`);
    this.status = status;
    this.fix = fix ?? "";
    this.kind = kind ?? "";
  }
}

export class Api {
  constructor(root = "/api") {
    this.root = root;
    this.csrf = "";
  }

  async me() {
    const me = await this.call("GET", "/me");
    this.csrf = me.csrf ?? "";
    return me;
  }

  next = (known = []) => this.call("POST", "/next", { known });
  item = (id) => this.call("GET", `/items/${encodeURIComponent(id)}`);
  progress = () => this.call("GET", "/progress");
  mine = (limit = 50) => this.call("GET", `/mine?limit=${limit}`);
  renew = (lease) => this.call("POST", `/leases/${encodeURIComponent(lease)}/renew`, {});

  /** Release a lease, even while the page is being closed. */
  release(lease) {
    const options = { method: "DELETE", headers: { "X-CSRF-Token": this.csrf }, keepalive: true };
    fetch(`${this.root}/leases/${encodeURIComponent(lease)}`, options).catch(() => {});
  }

  events = () => new EventSource(`${this.root}/events`);

  /** A call with a JSON response. An outdated CSRF token is renewed once. */
  async call(method, path, body, again = true) {
    const reply = await this.reach(method, path, body);
    if (reply.ok) return reply.status === 204 ? {} : readJson(reply);
    if (reply.status === 401) throw new SignedOut("You are not signed in.");
    if (reply.status >= 500 || reply.status === 429 || reply.status === 408) {
      const { error, kind } = await readJson(reply).catch(() => ({}));
      const after = Number(reply.headers.get("Retry-After")) || null;
      throw new Unreachable(error ?? `The server responded with status ${reply.status}.`, after, kind);
    }
    const error = await readJson(reply).catch(() => ({}));
    if (reply.status === 403 && method !== "GET" && again) {
      const before = this.csrf;
      await this.me();
      if (this.csrf !== before) return this.call(method, path, body, false);
    }
    throw new Refused(reply.status, error);
  }

  async reach(method, path, body) {
    const headers = { Accept: "application/json" };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    if (method !== "GET") headers["X-CSRF-Token"] = this.csrf;
    try {
      return await fetch(this.root + path, {
        method,
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        credentials: "same-origin",
        cache: "no-store",
        signal: AbortSignal.timeout(TIMEOUT),
      });
    } catch (problem) {
      throw new Unreachable(String(problem?.message ?? problem));
    }
  }
}

async function readJson(reply) {
  try {
    return await reply.json();
  } catch {
    throw new Unreachable("The response was incomplete.");
  }
}
