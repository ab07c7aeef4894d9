// @ts-check
// How a state is shown.
import { setText } from './dom.js';

/**
 * badge shows a state by a word, a shape and a colour; of what is stale, the last one that was known.
 * @param {HTMLElement} el
 * @param {string} state
 * @param {string} [more]
 * @param {boolean} [stale]
 */
export function badge(el, state, more, stale = false) {
  if (el.dataset.state !== state) el.dataset.state = state;
  el.toggleAttribute('data-stale', stale && state !== 'unknown');
  const text = stale && state !== 'unknown' ? `was ${state}` : state;
  setText(el, more ? `${text}, ${more}` : text);
}
