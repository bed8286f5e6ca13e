// How long an answer took: reading until the first edit, then task by task. Nobody pays for a coffee break.

const PATIENCE = 60; // seconds without any sign of a person that still count

/** Seconds by what they were spent on. Times come from the caller, in seconds of any clock that runs forward. */
export class Clock {
  constructor(seconds, now) {
    this.seconds = { ...seconds };
    this.pending = 0;
    this.last = now;
    this.running = true;
  }

  /** Somebody is there: a key, a movement, a touch. */
  alive(now) {
    if (this.running) this.pending += Math.min(Math.max(now - this.last, 0), PATIENCE);
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

  /** All that has gathered was spent on this. */
  charge(what, now) {
    this.alive(now);
    this.seconds[what] = (this.seconds[what] ?? 0) + this.pending;
    this.pending = 0;
  }

  /** The seconds as they are sent. */
  total() {
    const rounded = ([what, spent]) => [what, Math.round(100 * spent) / 100];
    return Object.fromEntries(Object.entries(this.seconds).map(rounded));
  }
}
