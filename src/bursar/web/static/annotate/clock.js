// Measures annotation time: reading until the first edit, then time by task. Long breaks are not counted.

const MAX_IDLE = 60; // seconds without activity that are still counted

/** Seconds by activity. The caller passes the current time, in seconds of a monotonic clock. */
export class Clock {
  constructor(seconds, now) {
    this.seconds = { ...seconds };
    this.pending = 0;
    this.last = now;
    this.running = true;
  }

  /** Call on any user activity. */
  alive(now) {
    if (this.running) this.pending += Math.min(Math.max(now - this.last, 0), MAX_IDLE);
    this.last = now;
  }

  pause(now) {
    this.alive(now);
    this.running = false;
  }

  resume(now) {
    this.last = now;
    this.running = true;
  }

  /** Assign the time since the last call to an activity. */
  charge(what, now) {
    this.alive(now);
    this.seconds[what] = (this.seconds[what] ?? 0) + this.pending;
    this.pending = 0;
  }

  /** The seconds by activity, rounded. */
  total() {
    const rounded = ([what, spent]) => [what, Math.round(100 * spent) / 100];
    return Object.fromEntries(Object.entries(this.seconds).map(rounded));
  }
}
