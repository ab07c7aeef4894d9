// @ts-check
// Break: end a hold against its holder's will.
import { ask, leasePath, Problem } from './api.js';
import { openDialog } from './dialog.js';
import { duration, h, quote } from './dom.js';

/**
 * openBreak asks for the name to be typed, and breaks that term and no other.
 * @param {import('./model.js').Lease} l
 * @param {() => void} done
 */
export function openBreak(l, done) {
  const typed = /** @type {HTMLInputElement} */ (h('input', { autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', id: 'break-name' }));
  const note = /** @type {HTMLInputElement} */ (h('input', { autocomplete: 'off', id: 'break-note', maxlength: '200' }));
  openDialog(`Break the hold of ${l.name}`, {
    danger: true,
    body: [
      h('p', {}, 'Its holder is not asked. What may still be running:'),
      h('ul', {}, ...running(l).map((text) => h('li', {}, text))),
      h('label', {}, h('span', {}, 'Type ', h('code', {}, l.name), ' to confirm'), typed),
      h('label', {}, 'Reason, written down with the break', note),
      h('p.command', {}, h('code', {}, breakCommand(l))),
    ],
    confirm: 'Break the hold',
    ready: () => typed.value === l.name,
    async submit() {
      try {
        await ask(leasePath(l.name, 'break'), {
          method: 'POST', body: JSON.stringify({ token: l.token, note: note.value.trim() }),
          headers: { 'Content-Type': 'application/json' },
        });
      } catch (err) {
        throw explained(err);
      }
      done();
    },
  });
}

/**
 * running says what a break does not stop.
 * @param {import('./model.js').Lease} l
 */
function running(l) {
  const ttl = (l.ttl || 0) * 1000;
  const all = [
    `${l.holder} works on until its next renewal is refused: in about ${duration(ttl / 3)} if it is well; never if it is paused or cut off.`,
    'Requests that it has already sent may arrive at any later time. A resource that checks tokens refuses them once it has seen the next holder\'s; any other resource takes them.',
    `Others may take the name when the holder has let go, or ${duration(ttl)} after they saw the break.`,
  ];
  const info = Object.entries(l.info || {}).map(([key, value]) => `${key} ${value}`).join(', ');
  if (info) all.unshift(`It says of itself: ${info}.`);
  if (l.session) all.push('Only this name is taken from its session; the rest of the session goes on.');
  if (l.waiters > 0) all.push(`${l.waiters} ${l.waiters === 1 ? 'waits' : 'wait'} for the name: the first of them is next.`);
  return all;
}

/**
 * explained says what to do about a break that was refused.
 * @param {unknown} err
 */
function explained(err) {
  if (!(err instanceof Problem)) return new Error('The server can\'t be reached: whether the hold was broken is not known. Look at the state, then try again.');
  if (err.status === 403) return new Error(`Not allowed: ${err.message}. The server's policy has to give you "break" on this name. Nothing was changed.`);
  if (err.status === 401) return new Error('Not allowed: the server does not know who you are. Nothing was changed.');
  if (err.code === 'not_current') return new Error(`${err.message}. Nothing was changed: that term is over.`);
  return err;
}

/** @param {import('./model.js').Lease} l */
export function breakCommand(l) {
  return `leasehold break ${quote(l.name)} --token ${l.token} --store ${location.origin}`;
}
