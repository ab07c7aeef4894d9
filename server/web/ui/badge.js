// @ts-check
// How a state is shown.
import { setText } from './dom.js';

/**
 * badge shows a state by a word, a shape and a colour.
 * @param {HTMLElement} el
 * @param {string} state
 * @param {string} [more]
 */
export function badge(el, state, more) {
  el.dataset.state = state;
  setText(el, more ? `${state}, ${more}` : state);
}
