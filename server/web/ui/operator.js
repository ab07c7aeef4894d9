// @ts-check
// The buttons of what an operator can do to a name: those that make sense, and of those that aren't allowed, why.
import { h, setText } from './dom.js';
import { operations } from './operations.js';

/** What an operation is, within a sentence. */
const verbs = /** @type {Record<string, string>} */ ({ handoff: 'hand over', pause: 'pause or resume', break: 'break' });

/** Operator is the buttons and notes for one name. */
export class Operator {
  /** @param {() => void} changed called when something was done */
  constructor(changed) {
    this.changed = changed;
    /** @type {import('./model.js').Lease|null} */
    this.lease = null;
    this.said = h('p.said', { role: 'status' });
    this.saidOf = ''; // the state of the name to which it was said
    this.refusal = h('p.hint', { id: 'refusal', hidden: true });
    this.notes = h('div', {}, this.said, this.refusal);
    this.entries = operations.map((operation) => ({
      operation,
      button: h(`button.${operation.kind}`, { type: 'button', hidden: true, onclick: () => this.start(operation) }, operation.text),
    }));
    this.buttons = h('div.actions', { role: 'group', 'aria-label': 'What can be done' }, ...this.entries.map(({ button }) => button));
    /** @type {Set<string>} */
    this.refused = new Set();
  }

  /** @param {import('./operations.js').Operation} operation */
  start(operation) {
    if (!this.lease || this.refused.has(operation.action)) return;
    const of = term(this.lease);
    operation.open(this.lease, (said) => {
      this.saidOf = of;
      setText(this.said, said);
      this.changed();
    });
  }

  /**
   * show offers what can be done to a name.
   * @param {import('./model.js').Lease} l
   * @param {{caller: string, may: string[]}} me
   * @param {boolean} stale nothing is offered: who knows what it would be done to
   */
  show(l, me, stale) {
    this.lease = l;
    if (this.saidOf && this.saidOf !== term(l)) {
      this.saidOf = '';
      setText(this.said, '');
    }
    const offered = this.entries.filter(({ operation }) => operation.offered(l));
    this.refused = new Set(offered.map(({ operation }) => operation.action).filter((action) => stale || !me.may.includes(action)));
    for (const entry of this.entries) {
      const off = this.refused.has(entry.operation.action);
      entry.button.hidden = !offered.includes(entry);
      entry.button.setAttribute('aria-disabled', String(off));
      if (off) entry.button.setAttribute('aria-describedby', 'refusal');
      else entry.button.removeAttribute('aria-describedby');
    }
    this.refusal.hidden = this.refused.size === 0;
    const what = [...this.refused].map((action) => verbs[action]).join(', ');
    setText(this.refusal, stale ? 'Nothing can be done while what is shown is not current.'
      : `${me.caller || 'Whoever has not signed in'} may not ${what} here: the server's policy does not allow it.`);
  }
}

/**
 * term is what changes when what was asked for has been done.
 * @param {import('./model.js').Lease} l
 */
function term(l) {
  return `${l.token} ${l.holder}`;
}
