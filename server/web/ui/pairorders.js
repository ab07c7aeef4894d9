// @ts-check
// What an operator can do to a pair: switch over, hold every instance passive, and end the hold. Each says first what it will do.
import { ask, Problem } from './api.js';
import { quote } from './command.js';
import { openDialog } from './dialog.js';
import { duration, h } from './dom.js';

/**
 * @typedef {import('./pair.js').Pair} Pair
 *
 * @typedef {object} Order
 * @property {string} action  as a policy calls it
 * @property {string} verb    within a sentence
 * @property {string} text    on its button
 * @property {string} kind    how it looks
 * @property {(p: Pair) => boolean} offered  whether it makes sense
 * @property {(p: Pair, done: (said: string) => void) => void} open
 */

/** @type {Order[]} */
export const orders = [
  { action: 'handoff', verb: 'switch over', text: 'Switch over…', kind: 'handoff', offered: (p) => Boolean(p.pod) && p.state === 'active', open: openSwitchover },
  { action: 'pause', verb: 'hold the pair passive', text: 'Hold passive…', kind: 'pause', offered: (p) => p.state !== 'held passive', open: openHold },
  { action: 'pause', verb: 'end the hold', text: 'End the hold…', kind: 'primary', offered: (p) => p.state === 'held passive', open: openResume },
];

/**
 * @param {string} name
 * @param {string} [what]
 */
export function pairPath(name, what) {
  return `/v1/pairs/${encodeURIComponent(name)}${what ? `/${what}` : ''}`;
}

/**
 * send gives an order, and returns how the pair stands then.
 * @param {Pair} p
 * @param {string} what
 * @param {Record<string, any>} body
 * @returns {Promise<Pair>}
 */
async function send(p, what, body) {
  try {
    return await (await ask(pairPath(p.lease, what), { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } })).json();
  } catch (err) {
    const look = 'whether it was done is not known. Look at the pair before you try again.';
    if (!(err instanceof Problem)) throw new Error(`The server can’t be reached: ${look}`);
    if (err.status === 403) throw new Error(`Not allowed: ${err.message}. Nothing was changed.`);
    throw new Error(err.status < 500 ? `${err.message}. Nothing was changed.` : `${err.message}: ${look}`);
  }
}

/** @param {Record<string, any>} props */
function field(props) {
  return /** @type {HTMLInputElement} */ (h('input', { autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', ...props }));
}

/** @param {Pair} p */
function confirmation(p) {
  const input = field({ id: 'confirm-name' });
  return { label: h('label', {}, h('span', {}, 'Type ', h('code', {}, p.lease), ' to confirm'), input), given: () => input.value === p.lease };
}

/** @param {(string|null)[]} all */
function willDo(all) {
  return h('div.will', {}, h('p', {}, 'What it will do'), h('ul', {}, ...all.map((text) => (text ? h('li', {}, text) : null))));
}

/** @param {Pair} p */
function ttl(p) {
  return p.ttl ? duration(p.ttl * 1000) : 'the TTL';
}

/**
 * gapOf is for how long nobody was active.
 * @param {number} seconds
 */
export const gapOf = (seconds) => (seconds < 0.05 ? 'less than 0.1 s' : duration(seconds * 1000));

/**
 * @param {string} verb
 * @param {Record<string, string>} flags
 */
function line(verb, flags) {
  const rest = Object.entries(flags).filter(([, value]) => value !== '').map(([key, value]) => ` --${key} ${quote(value)}`).join('');
  return `leasehold standby ${verb}${rest} --config dr.yaml`;
}

/**
 * openSwitchover has the active instance of that term hand over.
 * @param {Pair} p
 * @param {(said: string) => void} done
 */
function openSwitchover(p, done) {
  const from = p.pod || '', name = confirmation(p);
  const others = (p.instances || []).filter((i) => i.pod !== from);
  const first = others.find((i) => i.status === 'passive');
  const choices = h('fieldset', {}, h('legend', {}, 'Which instance is to be active'), ...others.map((i) => h(
    'label.choice', {}, h('input', { type: 'radio', name: 'to', value: i.pod, checked: i === first, disabled: i.status !== 'passive' }),
    h('span', {}, h('b', {}, i.pod), `${i.region ? ` in ${i.region}` : ''}, ${i.status}`),
  )), others.length === 0 ? h('p', {}, 'No other instance has answered yet.') : null);
  const to = () => /** @type {HTMLInputElement|null} */ (choices.querySelector('input:checked'))?.value || '';
  const last = (p.changes || []).find((c) => c.gap_seconds !== undefined);
  openDialog(`Switch ${p.lease} over`, {
    kind: 'handoff',
    body: [
      choices,
      willDo([
        `${from} becomes passive: it stops its work, and waits until its writes and its program have ended.`,
        'Then it hands the lease over in one write, and the other instance is active after a write of its own, with a new token. No TTL passes.',
        `In between nobody is active.${last ? ` Last time that took ${gapOf(last.gap_seconds || 0)}.` : ''}`,
        'If the other instance doesn’t answer within 30 s, nothing is changed.',
        `If it dies during the hand-over, other instances take over after ${ttl(p)}.`,
      ]),
      name.label,
    ],
    confirm: 'Switch over',
    ready: () => name.given() && to() !== '',
    command: () => line('switchover', { to: to() }),
    async submit() {
      const chosen = to(), now = await send(p, 'switchover', { to: chosen, token: p.token });
      const gap = now.changes?.[0]?.gap_seconds;
      done(`${chosen} is active${gap === undefined ? '' : `. Nobody was for ${gapOf(gap)}`}.`);
    },
  });
}

/**
 * openHold has nobody be active.
 * @param {Pair} p
 * @param {(said: string) => void} done
 */
function openHold(p, done) {
  const name = confirmation(p), reason = field({ id: 'reason', maxlength: '200' });
  openDialog(`Hold ${p.lease} passive`, {
    kind: 'pause',
    body: [
      willDo([
        'No instance is active until the hold is ended: what the active one does is done by nobody.',
        p.owner && p.state !== 'resuming' ? `${p.pod || p.owner} becomes passive at its next renewal. After ${ttl(p)} it has certainly stopped.` : 'Nobody is active now.',
        'The hold does not expire, and it survives restarts of the instances and of this server. Instances of Admiral keep to it, too.',
      ]),
      h('label', {}, 'Reason, for people who wonder that nobody is active (needed)', reason), name.label,
    ],
    confirm: 'Hold passive',
    ready: () => name.given() && reason.value.trim() !== '',
    command: () => line('hold', { reason: reason.value.trim() }),
    async submit() {
      // A token of 0 is a lease that nobody ever held.
      await send(p, 'hold', { reason: reason.value.trim(), ...(Number(p.token) > 0 ? { token: p.token } : {}) });
      done('Held passive.');
    },
  });
}

/**
 * openResume ends a hold.
 * @param {Pair} p
 * @param {(said: string) => void} done
 */
function openResume(p, done) {
  openDialog(`End the hold of ${p.lease}`, {
    body: [
      p.note ? h('p', {}, p.note) : null,
      willDo([
        p.settled ? 'An instance becomes active at once: the one that takes the lease first.'
          : 'An instance becomes active after the TTL: the one that was active before the hold may not have noticed it yet.',
      ]),
    ],
    confirm: 'End the hold',
    command: () => line('resume', {}),
    async submit() {
      await send(p, 'resume', {});
      done('The hold is over.');
    },
  });
}
