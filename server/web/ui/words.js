// @ts-check
// What a state means, for an operator who was woken by it.
import { duration } from './dom.js';
import { pauseText } from './model.js';

/**
 * means says what is the matter with a name, and what comes next.
 * @param {string} state
 * @param {import('./model.js').Lease} l
 * @param {import('./model.js').Expiry} e
 * @param {import('./lanes.js').Term[]} terms newest first
 * @param {number} now
 * @param {number} wall the server's time of day when performance.now() was 0
 */
export function means(state, l, e, terms, now, wall) {
  const pause = l.paused ? `Paused by ${pauseText(l.paused)}, ${duration(wall + now - Date.parse(l.paused.since))} ago. ` : '';
  return pause + meaning(state, l, e, terms, wall + now);
}

/**
 * @param {string} state
 * @param {import('./model.js').Lease} l
 * @param {import('./model.js').Expiry} e
 * @param {import('./lanes.js').Term[]} terms
 * @param {number} time of day at the server
 */
function meaning(state, l, e, terms, time) {
  const last = terms.find((t) => t.until);
  switch (state) {
    case 'expired':
      return e.over ? `The session that kept it has ended: ${l.holder} no longer holds it. The next caller takes it.`
        : `${l.holder} has not renewed it within its TTL: the holder has died, hangs or is cut off. The next caller takes the name.`;
    case 'in jeopardy':
      return `${l.holder} has not renewed it for two thirds of its TTL. Without a renewal the lease expires, and another caller takes the name.`;
    case 'broken':
      return `An operator broke this hold, and ${l.holder} has not released it yet. Another caller takes the name when it is released, or when its TTL has passed.`;
    case 'handed over':
      return `It was handed over to ${l.holder}, which has not confirmed it yet.`;
    case 'contended':
      return `${l.waiters === 1 ? 'One caller waits' : `${l.waiters} callers wait`} for it at this server, first come, first served.`;
    case 'paused':
      return l.paused?.until ? 'Nobody leads until then, or until it is resumed.' : 'Nobody leads until it is resumed.';
    case 'free':
      return last?.until ? `Nobody holds it. The last hold ended ${duration(time - Date.parse(last.until))} ago: ${last.ended || 'no reason is known'}.`
        : 'Nobody holds it, and no earlier hold is known.';
    case 'declared':
      return 'It is the name of a pool of identities: nobody can hold it. Its values have names of their own.';
    case 'unknown':
      return 'This is the last known state. It may have changed since.';
    default:
      return l.paused ? `${l.holder} has not stepped down yet.` : '';
  }
}
