// @ts-check
// What a state means, for whoever has been woken by it.
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
      return e.over ? `The session that kept it is over: ${l.holder} holds it no more, and whoever comes next takes it.`
        : `${l.holder} has not renewed it for its TTL: it has died, is stuck or cut off. Whoever comes next takes the name; nobody has yet.`;
    case 'in jeopardy':
      return `${l.holder} has not renewed it for two thirds of its TTL. If it doesn't in time, the name expires, and others take it.`;
    case 'broken':
      return `An operator has ended this hold, and ${l.holder} has not let go of it yet. Others take it when it does, or when its TTL is over.`;
    case 'handed over':
      return `It was given to ${l.holder}, which has not taken it up yet.`;
    case 'contended':
      return `${l.waiters === 1 ? 'One waits' : `${l.waiters} wait`} for it at this server, first come, first served.`;
    case 'paused':
      return l.paused?.until ? 'Nobody leads until then, or until it is resumed.' : 'Nobody leads until it is resumed.';
    case 'free':
      return last?.until ? `Nobody holds it. The last hold ended ${duration(time - Date.parse(last.until))} ago: ${last.ended || 'no reason is known'}.`
        : 'Nobody holds it, and nobody did as far as is known.';
    case 'declared':
      return 'It is the name of a pool of identities: nobody can hold it. Its values have names of their own.';
    case 'unknown':
      return 'What is shown is what was known last. It may have changed since.';
    default:
      return l.paused ? `${l.holder} has not stepped down.` : '';
  }
}
