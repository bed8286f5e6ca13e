// A text and its words. The server counts code points, the browser UTF-16 code units.

const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/** Convert code point offsets to string offsets: `converted("🙂 ok", [2, 4])` is `[3, 5]`. */
export function converted(text, places) {
  if (!/[\ud800-\udfff]/.test(text)) return places.slice();
  const starts = [];
  for (let at = 0; at < text.length; at += text.codePointAt(at) > 0xffff ? 2 : 1) starts.push(at);
  starts.push(text.length);
  return places.map((place) => starts[Math.min(place, starts.length - 1)]);
}

/** "rtl" or "ltr", by the first letter. */
export function directionOf(text) {
  const letter = /\p{L}/u.exec(text);
  return letter && RIGHT_TO_LEFT.test(letter[0]) ? "rtl" : "ltr";
}

/** A text with its word offsets. */
export class Passage {
  constructor(text, words) {
    this.text = text ?? "";
    const flat = converted(this.text, (words ?? []).flat());
    this.bounds = (words ?? []).map((_, word) => [flat[2 * word], flat[2 * word + 1]]);
    this.direction = directionOf(this.text);
  }

  get length() {
    return this.bounds.length;
  }

  /** The text of a range of words, end exclusive. */
  slice(start, end) {
    if (!(start < end) || end > this.length) return "";
    return this.text.slice(this.bounds[start][0], this.bounds[end - 1][1]);
  }

  word(at) {
    return this.slice(at, at + 1);
  }

  /** The text split into words and gaps: `[{ text, word }]`, where `word` is -1 for gaps. */
  pieces() {
    const found = [];
    let at = 0;
    this.bounds.forEach(([start, end], word) => {
      if (start > at) found.push({ text: this.text.slice(at, start), word: -1 });
      found.push({ text: this.text.slice(Math.max(start, at), end), word });
      at = Math.max(at, end);
    });
    if (at < this.text.length) found.push({ text: this.text.slice(at), word: -1 });
    return found;
  }
}

/** A text shortened to its beginning and end. */
export function shortened(text, most = 60) {
  const letters = Array.from(text.replace(/\s+/g, " ").trim());
  if (letters.length <= most) return letters.join("");
  return `${letters.slice(0, Math.ceil(most * 0.6)).join("")} … ${letters.slice(-Math.floor(most * 0.3)).join("")}`;
}
