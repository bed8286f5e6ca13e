// Server-sent events, with reconnection.

const KINDS = ["state", "stage", "scored", "preview", "advice"];
const PAUSES = [1000, 2000, 5000, 10000]; // milliseconds before reconnecting

/** Forwards the events of the server, and `lost` and `found` when the connection drops and comes back. */
export class EventStream {
  constructor(api) {
    this.api = api;
    this.listeners = new Map();
    this.tries = 0;
    this.dropped = false;
  }

  on(kind, listener) {
    this.listeners.set(kind, [...(this.listeners.get(kind) ?? []), listener]);
  }

  off(kind, listener) {
    this.listeners.set(kind, (this.listeners.get(kind) ?? []).filter((other) => other !== listener));
  }

  start() {
    const source = this.api.events();
    source.addEventListener("open", () => {
      this.tries = 0;
      this.emit("found", this.dropped);
      this.dropped = false;
    });
    for (const kind of KINDS) source.addEventListener(kind, (event) => this.emit(kind, JSON.parse(event.data)));
    source.addEventListener("error", () => {
      source.close();
      this.dropped = true;
      this.emit("lost");
      setTimeout(() => this.start(), PAUSES[Math.min(this.tries, PAUSES.length - 1)]);
      this.tries += 1;
    });
    addEventListener("pagehide", () => source.close(), { once: true });
  }

  emit(kind, data) {
    for (const listener of this.listeners.get(kind) ?? []) listener(data);
  }
}
