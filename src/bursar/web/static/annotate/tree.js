// Dependency trees as pure functions: heads count from 1, 0 is the root, null is unknown.

/** The words (from 1) of a loop that never reaches the root; [] if there is none. */
export function loopOf(heads) {
  const safe = new Array(heads.length + 1).fill(false);
  safe[0] = true;
  for (let word = 1; word <= heads.length; word += 1) {
    const path = [];
    const seen = new Map();
    let at = word;
    while (at !== null && at !== undefined && !safe[at]) {
      if (seen.has(at)) return path.slice(seen.get(at)).sort((a, b) => a - b);
      seen.set(at, path.length);
      path.push(at);
      at = heads[at - 1];
    }
    for (const passed of path) safe[passed] = true;
  }
  return [];
}

/** The window of words shown around a position, `[first, last]`; unchanged if the position is well within it. */
export function windowAround(place, words, most, before = null) {
  if (words <= most) return [1, words];
  const margin = most / 10;
  if (before) {
    const [from, to] = before;
    const wellAfter = from === 1 || place >= from + margin;
    const wellBefore = to === words || place <= to - margin;
    if (place >= from && place <= to && wellAfter && wellBefore) return before;
  }
  const first = Math.max(1, Math.min(Math.round(place - most / 2), words - most + 1));
  return [first, first + most - 1];
}

/** The arcs of words with a head: `{ word, head, label }`. */
export function arcsOf(state) {
  return state.map(([head, label], at) => ({ word: at + 1, head, label })).filter(({ head }) => head !== null);
}

/** The level of every arc: above all arcs within it. Arcs are `{ word, head }`. */
export function heightsOf(arcs, words) {
  const skyline = new Array(words + 1).fill(0); // by gap between words
  const heights = arcs.map(() => 0);
  const span = ({ word, head }) => Math.abs(word - head);
  const order = arcs.map((_, at) => at).sort((a, b) => span(arcs[a]) - span(arcs[b]) || a - b);
  for (const at of order) {
    const [left, right] = [Math.min(arcs[at].word, arcs[at].head), Math.max(arcs[at].word, arcs[at].head)];
    let top = 0;
    for (let gap = left; gap < right; gap += 1) top = Math.max(top, skyline[gap]);
    heights[at] = top;
    for (let gap = left; gap < right; gap += 1) skyline[gap] = top + 1;
  }
  return heights;
}
