// @ts-check
// Whether there are pairs to show: a server without any needs no such view, and its page loads none.
import { ask } from './api.js';

const seek = 30_000; // between two looks, while there are none
let some = false; // there are pairs
let soughtAt = -Infinity;

/** offered looks for pairs now and then. */
export function offered() {
  if (!some && performance.now() - soughtAt > seek) {
    soughtAt = performance.now();
    ask('/v1/pairs').then((resp) => resp.json()).then(({ pairs }) => {
      some = pairs.length > 0;
      if (some) dispatchEvent(new HashChangeEvent('hashchange')); // draws the navigation
    }).catch(() => {}); // the stream says why
  }
  return some || location.hash.startsWith('#pair');
}
