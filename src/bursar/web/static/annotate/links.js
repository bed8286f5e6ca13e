// Links between spans, as pure functions. A state is `{ entities, links, none }`, a link `[span, span, label]`.

import { same } from "./draft.js";
import { sameStretch, withSpan, withSpans } from "./spans.js";

export const byPlace = (links) => links.slice().sort((one, two) => one[0][0] - two[0][0] || one[1][0] - two[1][0]);

/** All spans that can be linked: of this state, of another task, and the ends of existing links. */
export function entitiesOf({ entities, links }, others = []) {
  const ends = links.flatMap(([from, to]) => [from, to]);
  return withSpans(withSpans(entities, ends, true), others, true);
}

/** With one more link, unless it exists already. */
export function withLink(state, link) {
  const links = state.links.some((other) => same(other, link)) ? state.links : byPlace([...state.links, link]);
  return { ...state, links, none: false };
}

export const withoutLink = (state, index) => ({ ...state, links: state.links.filter((_, at) => at !== index) });

/** With a new type for a span, in its links as well. */
export function retyped(state, span, type) {
  const turned = (one) => (sameStretch(one, span) ? [one[0], one[1], type] : one);
  return {
    ...state,
    entities: withSpan(state.entities, turned(span), true),
    links: state.links.map(([from, to, label]) => [turned(from), turned(to), label]),
  };
}

/** Without a span and its links. */
export function withoutEntity(state, span) {
  const off = (one) => !sameStretch(one, span);
  const links = state.links.filter(([from, to]) => off(from) && off(to));
  return { ...state, entities: state.entities.filter(off), links };
}
