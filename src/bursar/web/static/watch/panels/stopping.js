// Advice on when to stop: the verdict, then its reasons.

import { el } from "../../annotate/dom.js";
import { empty, plain } from "../parts.js";

const VERDICTS = { stop: ["Stop", "stop"], "go on": ["Continue", "good"], unknown: ["Not enough data yet", ""] };

export function draw(part) {
  if (part.empty) return empty(part);
  const [verdict, tone] = VERDICTS[part.verdict];
  return [el("p", { class: `verdict ${tone}` }, verdict), ...plain(part)];
}
