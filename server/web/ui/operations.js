// @ts-check
// What an operator can do to a name: break a hold, have a leader hand over, pause an election and resume it. Each asks first, and says
// what it does not stop.
import { ask, leasePath, Problem } from './api.js';
import { leasehold } from './command.js';
import { openDialog } from './dialog.js';
import { duration, h } from './dom.js';
import { pauseText } from './model.js';
import { plan } from './progress.js';

/**
 * @typedef {import('./model.js').Lease} Lease
 * @typedef {(plan: import('./progress.js').Plan) => void} Done  is called when an operation was sent, with what is to come of it
 *
 * @typedef {object} Operation
 * @property {string} action  as a policy calls it
 * @property {string} text    on its button
 * @property {string} kind    how it looks
 * @property {(l: Lease, state: string) => boolean} offered  whether it makes sense, as the name stands
 * @property {(l: Lease, done: Done) => void} open
 */

/** States in which there is no hold to end: it was broken, has expired, or was handed over. */
const over = ['broken', 'expired', 'handed over', 'free', 'unreadable', 'declared'];

/** @type {Operation[]} */
export const operations = [
  { action: 'handoff', text: 'Hand over…', kind: 'handoff', offered: (l, state) => leads(l) && !over.includes(state), open: openHandoff },
  { action: 'pause', text: 'Pause…', kind: 'pause', offered: (l) => !l.paused && (l.candidates || []).length > 0, open: openPause },
  { action: 'pause', text: 'Resume…', kind: 'primary', offered: (l) => Boolean(l.paused), open: openResume },
  { action: 'break', text: 'Break the hold…', kind: 'danger', offered: (l, state) => Boolean(l.holder) && !over.includes(state), open: openBreak },
];

/** @param {Lease} l */
function leads(l) {
  return l.state === 'held' && (l.candidates || []).some((c) => c.holder === l.holder);
}

/**
 * send asks for an operation.
 * @param {Lease} l
 * @param {string} what
 * @param {Record<string, any>} body
 */
export async function send(l, what, body) {
  try {
    await ask(leasePath(l.name, what), { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } });
  } catch (err) {
    throw explained(err);
  }
}

/**
 * explained says what to do about an operation that was refused.
 * @param {unknown} err
 */
export function explained(err) {
  const look = 'whether it was done is not known. Look at the state before you try again.';
  if (!(err instanceof Problem)) return new Error(`The server can't be reached: ${look}`);
  if (err.status === 403) return new Error(`Not allowed: ${err.message}. The server's policy has to allow it. Nothing was changed.`);
  if (err.status === 401) return new Error('Not allowed: the server does not know who you are. Nothing was changed.');
  if (err.code === 'not_current') return new Error(`${err.message}. Nothing was changed: that term is over.`);
  if (err.status < 500) return new Error(`${err.message}. Nothing was changed.`);
  return new Error(`${err.message}: ${look}`);
}

/**
 * confirmation is a field that wants the name.
 * @param {Lease} l
 */
function confirmation(l) {
  const input = field({ id: 'confirm-name' });
  return { label: h('label', {}, h('span', {}, 'Type ', h('code', {}, l.name), ' to confirm'), input), given: () => input.value === l.name };
}

/** @param {Record<string, any>} props */
export function field(props) {
  return /** @type {HTMLInputElement} */ (h('input', { autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', ...props }));
}

/**
 * @param {string} title
 * @param {(string|null)[]} all
 */
export function list(title, all) {
  return h('div', {}, h('p', {}, title), h('ul', {}, ...all.map((text) => (text ? h('li', {}, text) : null))));
}

const still = 'What may still be running';
export const late = 'Requests that it has already sent may arrive at any later time. A resource that checks tokens refuses them once it has seen '
  + 'the next holder\'s; any other resource takes them.';

/** @param {{ttl?: number}} l */
export function third(l) {
  return duration((l.ttl || 0) * 1000 / 3);
}

/** @param {Lease} l */
function itself(l) {
  const info = Object.entries(l.info || {}).map(([key, value]) => `${key} ${value}`).join(', ');
  return info ? `${l.holder} says of itself: ${info}.` : null;
}

/**
 * openBreak breaks that term and no other.
 * @param {Lease} l
 * @param {Done} done
 */
function openBreak(l, done) {
  const name = confirmation(l), reason = field({ id: 'reason', maxlength: '200' });
  openDialog(`Break the hold of ${l.name}`, {
    kind: 'danger',
    body: [
      h('p', {}, `This does not ask ${l.holder}. Its next renewal is refused, and another caller takes the name.`,
        leads(l) ? h('b', {}, ' A hand-over asks it to stop first.') : null),
      list(still, [
        itself(l),
        `${l.holder} works until its next renewal is refused: about ${third(l)} if it is healthy, for ever if it is stopped or cut off.`,
        late,
        `Another caller may take the name when the holder has released it, or ${duration((l.ttl || 0) * 1000)} after that caller saw the break.`,
        l.session ? 'Its session loses this name only; the session continues.' : null,
        l.waiters > 0 ? `${l.waiters} ${l.waiters === 1 ? 'caller waits' : 'callers wait'} for the name: the first one is next.` : null,
      ]),
      h('label', {}, 'Reason, for the holder and the history', reason), name.label,
    ],
    confirm: 'Break the hold',
    ready: name.given,
    command: () => leasehold('break', l.name, { token: String(l.token), reason: reason.value.trim() }),
    async submit() {
      await send(l, 'break', { token: l.token, note: reason.value.trim() });
      done(plan('break', l));
    },
  });
}

/**
 * openHandoff has a leader stop, and hand over to a candidate.
 * @param {Lease} l
 * @param {Done} done
 */
function openHandoff(l, done) {
  const name = confirmation(l), reason = field({ id: 'reason', maxlength: '200' });
  const others = (l.candidates || []).filter((c) => c.holder !== l.holder);
  const best = others.find((c) => !c.ineligible);
  const radio = (/** @type {string} */ value, /** @type {boolean} */ checked, /** @type {boolean} */ off, /** @type {(Node|string)[]} */ ...text) => (
    h('label.choice', {}, h('input', { type: 'radio', name: 'to', value, checked, disabled: off }), h('span', {}, ...text)));
  const choices = h('fieldset', {}, h('legend', {}, 'Next leader'), ...others.map((c) => radio(c.holder, c === best, Boolean(c.ineligible),
    h('b', {}, c.name), c.name === c.holder ? '' : ` ${c.holder}`, ...about(c))), radio('', !best, false, h('b', {}, 'Any candidate'), ' that may lead'));
  const to = () => /** @type {HTMLInputElement} */ (choices.querySelector('input:checked')).value;
  openDialog(`Hand over ${l.name}`, {
    kind: 'handoff',
    body: [
      h('p', {}, `The server orders ${l.holder} to stop its work. When the work has ended, ${l.holder} hands the name over in one write, with a new token.`),
      choices,
      list(still, [
        itself(l),
        `${l.holder} learns of it within about ${third(l)}, and leads until its work has ended: it is asked, not forced. If it is stopped or cut off, nothing is handed over.`,
        late,
        'If the chosen candidate has died meanwhile, nobody leads until the TTL has passed.',
      ]),
      h('label', {}, 'Reason', reason), name.label,
    ],
    confirm: 'Hand over',
    ready: name.given,
    command: () => `${leasehold('handoff', l.name, { to: to(), reason: reason.value.trim() })}${to() ? '' : ' --any'}`,
    async submit() {
      const chosen = to();
      await send(l, 'handoff', { ...(chosen ? { to: chosen } : { any: true }), token: l.token, reason: reason.value.trim() });
      done(plan('handoff', l, others.find((c) => c.holder === chosen)?.name || chosen));
    },
  });
}

/** @param {import('./model.js').Candidate} c */
function about(c) {
  return [c.zone ? `, ${c.zone}` : '', c.priority ? `, priority ${c.priority}` : '', c.ineligible ? ', not eligible now' : ''];
}

/**
 * openPause has nobody lead.
 * @param {Lease} l
 * @param {Done} done
 */
function openPause(l, done) {
  const name = confirmation(l), reason = field({ id: 'reason', maxlength: '200' }), length = field({ id: 'for', maxlength: '20', placeholder: '10m' });
  const order = () => ({ reason: reason.value.trim(), ...(length.value.trim() ? { for: length.value.trim() } : {}) });
  const candidate = (l.candidates || []).some((c) => c.holder === l.holder);
  openDialog(`Pause ${l.name}`, {
    kind: 'pause',
    body: [
      h('p', {}, 'Nobody leads until it is resumed, or until the time below has passed. The work of the leader is not done meanwhile.'),
      list(still, l.holder ? [
        itself(l),
        candidate ? `${l.holder} learns of it within about ${third(l)}, and steps down when its work has ended. If it is stopped or cut off, its work may continue.`
          : `${l.holder} holds the name and is not a candidate: it does not react to a pause.`,
        late,
      ] : ['Nobody leads now.']),
      h('label', {}, 'Reason, shown where nobody leads (needed)', reason),
      h('label', {}, 'For how long (empty: until it is resumed)', length), name.label,
    ],
    confirm: 'Pause',
    ready: () => name.given() && reason.value.trim() !== '',
    command: () => leasehold('pause', l.name, order()),
    async submit() {
      await send(l, 'pause', order());
      done(plan('pause', l));
    },
  });
}

/**
 * openResume ends a pause.
 * @param {Lease} l
 * @param {Done} done
 */
function openResume(l, done) {
  const may = (l.candidates || []).filter((c) => !c.ineligible);
  openDialog(`Resume ${l.name}`, {
    body: [
      l.paused ? h('p', {}, `It is paused by ${pauseText(l.paused)}.`) : null,
      h('p', {}, may.length > 0 ? `One of its candidates leads then: ${may.map((c) => c.name).join(', ')}.` : 'There is no candidate now: the first one that comes leads.'),
    ],
    confirm: 'Resume',
    command: () => leasehold('resume', l.name),
    async submit() {
      await send(l, 'resume', {});
      done(plan('resume', l));
    },
  });
}
