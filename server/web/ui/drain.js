// @ts-check
// Draining a host: each election that it leads is handed over. What stays with it is told beforehand.
import { ask, leasePath } from './api.js';
import { leasehold } from './command.js';
import { openDialog } from './dialog.js';
import { duration, h, setText } from './dom.js';
import { next } from './model.js';
import { field, late, list, send, third } from './operations.js';
import { short } from './token.js';

/**
 * @typedef {import('./model.js').Lease} Lease
 *
 * @typedef {object} Drain
 * @property {string} host
 * @property {Lease[]} leads   the elections that it leads
 * @property {string[]} others the names that it holds beside them
 */

const atOnce = 4, listed = 8;

/**
 * each does something for all of a list, a few at a time.
 * @template T, R
 * @param {T[]} all
 * @param {(one: T) => Promise<R>} one
 * @returns {Promise<R[]>}
 */
async function each(all, one) {
  /** @type {R[]} */
  const done = [];
  for (let i = 0; i < all.length; i += atOnce) done.push(...await Promise.all(all.slice(i, i + atOnce).map(one)));
  return done;
}

/**
 * openDrain asks who stands for the elections, and then whether the host is to be drained.
 * @param {Drain} d
 * @param {(name: string) => boolean} may  hand that name over
 * @param {(sent: Lease[], failed: Map<string, string>) => void} done
 */
export async function openDrain(d, may, done) {
  /** @type {Lease[]} */
  const all = await each(d.leads, async ({ name }) => (await ask(leasePath(name))).json());
  const moves = all.filter((l) => may(l.name) && next(l)), stay = all.filter((l) => !moves.includes(l));
  const typed = field({ id: 'confirm-name' }), reason = field({ id: 'reason', maxlength: '200' });
  const most = moves.reduce((ttl, l) => Math.max(ttl, l.ttl || 0), 0);
  const names = d.others.slice(0, listed).join(', ') + (d.others.length > listed ? ` and ${d.others.length - listed} more` : '');
  openDialog(`Drain ${d.host}`, {
    kind: 'handoff',
    body: [
      h('p', {}, `The server orders ${d.host} to hand over ${moves.length === 1 ? 'the election' : `the ${moves.length} elections`} that it leads. It stops that work first, then hands each name over.`),
      list('Handed over', moves.map((l) => `${l.name}: ${next(l)?.name} would lead.`)),
      stay.length + d.others.length > 0 ? list(`Stays with ${d.host}`, [
        ...stay.map((l) => `${l.name}: ${may(l.name) ? 'no other candidate may lead now' : 'the policy does not let you hand it over'}.`),
        names ? `${names}: only an election can be handed over. ${d.others.length === 1 ? 'This hold ends' : 'These holds end'} when the process that holds ${d.others.length === 1 ? 'it' : 'them'} ends.` : null,
      ]) : null,
      list('What may still be running', [
        `${d.host} learns of it within about ${third({ ttl: most })}, and leads until its work has ended: it is asked, not forced.`,
        'The candidates of this host stay candidates: pause an election, or stop the process, to keep it from leading again.', late,
      ]),
      h('label', {}, 'Reason', reason),
      h('label', {}, h('span', {}, 'Type ', h('code', {}, d.host), ' to confirm'), typed),
    ],
    confirm: 'Drain the host',
    ready: () => typed.value === d.host && moves.length > 0,
    command: () => moves.map((l) => `${leasehold('handoff', l.name, { reason: reason.value.trim() })} --any`).join('\n') || `# no election of ${d.host} can be handed over`,
    async submit() {
      /** @type {Map<string, string>} */
      const failed = new Map();
      await each(moves, async (l) => {
        try {
          await send(l, 'handoff', { any: true, token: l.token, reason: reason.value.trim() });
        } catch (err) {
          failed.set(l.name, err instanceof Error ? err.message : String(err));
        }
      });
      if (failed.size === moves.length) throw new Error([...failed.values()][0]);
      done(moves, failed);
    },
  });
}

/** Drained shows what becomes of the names of a host that is drained. */
export class Drained {
  /** @param {import('./model.js').Model} model */
  constructor(model) {
    this.model = model;
    this.title = h('h3');
    this.list = h('ul.steps');
    this.problem = h('p.problem', { role: 'alert', hidden: true });
    this.steps = h('section.progress', { hidden: true, 'aria-live': 'polite' }, this.title, this.list);
    this.el = h('div', {}, this.problem, this.steps);
    /** @type {Lease[]} */
    this.sent = [];
    this.begun = NaN;
  }

  /** @param {unknown} err */
  refuse(err) {
    this.problem.hidden = false;
    setText(this.problem, err instanceof Error ? err.message : String(err));
  }

  /**
   * @param {string} host
   * @param {Lease[]} sent
   * @param {Map<string, string>} failed
   */
  start(host, sent, failed) {
    this.problem.hidden = true;
    this.sent = sent;
    this.begun = performance.now();
    setText(this.title, `Draining ${host}`);
    this.list.replaceChildren(...sent.map((l) => h('li', { 'data-step': failed.has(l.name) ? 'failed' : 'now' },
      `${l.name}: ${failed.get(l.name) || `${l.holder} has its order.`}`)));
    this.steps.hidden = false;
  }

  /** @param {number} now */
  render(now) {
    this.sent.forEach((before, i) => {
      const li = /** @type {HTMLElement} */ (this.list.children[i]), l = this.model.rows.get(before.name)?.lease;
      if (li.dataset.step !== 'now' || !l || l.token <= before.token || l.state === 'handed over' || !l.holder) return;
      li.dataset.step = 'done';
      setText(li, `${l.name}: ${l.holder} leads, with token ${short(l.token)}, after ${duration(now - this.begun)}.`);
    });
  }
}
