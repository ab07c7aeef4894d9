// @ts-check
// The buttons of what an operator can do to a name: those that make sense and are allowed; of the others that make sense, why they aren't there.
import { h, setText } from './dom.js';
import { operations } from './operations.js';
import { Progress } from './progress.js';

/** What an operation is, within a sentence. */
const verbs = /** @type {Record<string, string>} */ ({ handoff: 'hand over', pause: 'pause or resume', break: 'break' });

/** @typedef {{caller: string, may: string[], names?: Record<string, string[]>}} Me  whom the server takes us for, and what is allowed */

/**
 * scopeText says on which names an action is allowed.
 * @param {string[]} names
 */
export function scopeText(names) {
  return names.length > 0 ? names.join(', ') : 'no name';
}

/** Operator is the buttons and notes for one name. */
export class Operator {
  /** @param {() => void} changed called when something was done */
  constructor(changed) {
    this.changed = changed;
    /** @type {import('./model.js').Lease|null} */
    this.lease = null;
    this.progress = new Progress();
    this.refusal = h('p.hint', { id: 'refusal', hidden: true });
    this.notes = h('div', {}, this.progress.el, this.refusal);
    this.entries = operations.map((operation) => ({
      operation,
      button: h(`button.${operation.kind}`, { type: 'button', hidden: true, onclick: () => this.start(operation) }, operation.text),
    }));
    this.buttons = h('div.actions', { role: 'group', 'aria-label': 'What can be done' }, ...this.entries.map(({ button }) => button));
  }

  /** @param {import('./operations.js').Operation} operation */
  start(operation) {
    if (!this.lease) return;
    operation.open(this.lease, (plan) => {
      this.progress.start(plan);
      this.changed();
    });
  }

  /**
   * show offers what can be done to a name.
   * @param {import('./model.js').Lease} l
   * @param {string} state
   * @param {Me} me
   * @param {boolean} stale nothing is offered: who knows what it would be done to
   * @param {number} now
   */
  show(l, state, me, stale, now) {
    this.lease = l;
    if (!stale) this.progress.show(l, now);
    const sensible = this.entries.filter(({ operation }) => operation.offered(l, state));
    const allowed = stale ? [] : sensible.filter(({ operation }) => me.may.includes(operation.action));
    for (const entry of this.entries) entry.button.hidden = !allowed.includes(entry);
    const refused = [...new Set(sensible.filter((entry) => !allowed.includes(entry)).map(({ operation }) => operation.action))];
    this.refusal.hidden = refused.length === 0;
    if (refused.length > 0) setText(this.refusal, stale ? 'Nothing can be done while what is shown is not current.' : refusal(refused, me));
  }
}

/**
 * refusal says what is not allowed here, and where it is.
 * @param {string[]} actions
 * @param {Me} me
 */
function refusal(actions, me) {
  const who = me.caller || 'A caller who has not signed in';
  const where = me.names ? ` It may: ${actions.map((a) => `${verbs[a]} ${scopeText(me.names?.[a] || [])}`).join('; ')}.` : '';
  return `${who} may not ${actions.map((a) => verbs[a]).join(', ')} here: the server's policy does not allow it.${where}`;
}
