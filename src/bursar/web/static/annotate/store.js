// Browser storage for one person and project: drafts and unsent answers.

/** Entries with a common prefix. Without local storage, they last as long as the tab. */
export class BrowserStore {
  constructor(project, person, kept = usable()) {
    this.prefix = `bursar/${encodeURIComponent(project)}/${encodeURIComponent(person)}/`;
    this.kept = kept;
    this.lasting = kept !== null;
    this.memory = new Map();
  }

  get(name) {
    try {
      return JSON.parse(this.memory.get(name) ?? this.kept?.getItem(this.prefix + name) ?? "null");
    } catch {
      return null; // not written by this page
    }
  }

  /** Store an entry; returns false if it is only in memory. */
  put(name, value) {
    const text = JSON.stringify(value);
    try {
      if (this.kept) {
        this.kept.setItem(this.prefix + name, text);
        this.memory.delete(name);
        return true;
      }
    } catch {
      this.lasting = false; // the storage is full
    }
    this.memory.set(name, text);
    return false;
  }

  drop(name) {
    this.memory.delete(name);
    this.kept?.removeItem(this.prefix + name);
  }

  /** The names with a prefix, in order. */
  names(beginning) {
    const found = new Set(this.memory.keys());
    for (let at = 0; at < (this.kept?.length ?? 0); at += 1) {
      const name = this.kept.key(at);
      if (name.startsWith(this.prefix)) found.add(name.slice(this.prefix.length));
    }
    return [...found].filter((name) => name.startsWith(beginning)).sort();
  }
}

function usable() {
  try {
    localStorage.setItem("bursar/try", "1");
    localStorage.removeItem("bursar/try");
    return localStorage;
  } catch {
    return null;
  }
}

/** A UUID; `randomUUID` is missing on pages without https. */
export function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

const queues = new Map();

/** Run a function under a lock shared by all tabs. */
export function exclusively(name, work) {
  if (navigator.locks) return navigator.locks.request(name, work);
  const done = (queues.get(name) ?? Promise.resolve()).then(work, work);
  queues.set(name, done);
  return done;
}

/** Acquire a lock; resolves to its release function, or to null if another tab holds it. */
export function held(name) {
  if (!navigator.locks) return Promise.resolve(() => {});
  return new Promise((resolve, reject) => {
    navigator.locks
      .request(name, { ifAvailable: true }, (lock) => {
        if (!lock) return resolve(null);
        return new Promise((release) => resolve(release));
      })
      .catch(reject);
  });
}
