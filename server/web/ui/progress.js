// @ts-check
// What becomes of an operation after it was sent, step by step, as the page sees it happen.
import { duration, h, setText } from './dom.js';
import { short } from './token.js';

/**
 * @typedef {import('./model.js').Lease} Lease
 *
 * @typedef {object} Step
 * @property {string} text                 as it is said while it isn't done
 * @property {(l: Lease) => string} done   what to say when it is done; '' while it isn't
 *
 * @typedef {object} Plan
 * @property {string} title
 * @property {Step[]} steps  one after the other; what is done implies those before it
 */

const kept = 60_000; // for which a plan that has come to its end stays, in ms

/** @param {Lease} l */
const third = (l) => duration((l.ttl || 0) * 1000 / 3);

/**
 * next is the step of who holds the name after l.
 * @param {Lease} l
 * @param {string} text
 * @returns {Step}
 */
const next = (l, text) => ({ text, done: (now) => (now.holder && now.token > l.token && now.state !== 'handed over' ? `${now.holder} holds it, with token ${short(now.token)}.` : '') });

/**
 * of returns what is to come of an operation.
 * @param {string} what
 * @param {Lease} l          the name as it was
 * @param {string} [chosen]  the candidate that is to lead
 * @returns {Plan}
 */
export function plan(what, l, chosen) {
  /** @type {(text: string) => Step} */
  const sent = (text) => ({ text, done: () => text });
  /** @type {Step} */
  const gone = { text: `${l.holder} learns of it at its next renewal, in about ${third(l)}.`, done: (now) => (now.holder === l.holder && now.token === l.token ? '' : `${l.holder} has released it.`) };
  const candidate = (l.candidates || []).some((c) => c.holder === l.holder);
  const down = { text: candidate ? gone.text : `${l.holder} is not a candidate: it does not react to a pause.`, done: (/** @type {Lease} */ now) => (now.holder ? '' : `${l.holder} has stepped down.`) };
  switch (what) {
    case 'break':
      return { title: 'The break', steps: [sent('The hold is broken. Its next renewal is refused.'), gone, next(l, l.waiters > 0 ? 'The first waiter takes the name.' : 'Nobody waits for it at this server: the next caller takes the name.')] };
    case 'handoff':
      return { title: 'The hand-over', steps: [sent(`The server has ordered ${l.holder} to hand over to ${chosen || 'the next candidate'}.`),
        { text: `${l.holder} stops its work, and hands the name over.`, done: (now) => (now.token > l.token || now.holder !== l.holder ? `${l.holder} has handed the name over.` : '') },
        next(l, `${chosen || 'The next candidate'} leads.`)] };
    case 'pause':
      return { title: 'The pause', steps: [sent('The election is paused.'), ...(l.holder ? [down] : []),
        { text: 'Nobody leads.', done: (now) => (now.holder ? '' : 'Nobody leads.') }] };
    default:
      return { title: 'The resumption', steps: [sent('The election has been resumed.'), { text: 'The first candidate leads.', done: (now) => (now.holder && !now.paused ? `${now.holder} leads, with token ${short(now.token)}.` : '') }] };
  }
}

/** Progress is the list of steps. */
export class Progress {
  constructor() {
    this.list = h('ol.steps');
    this.title = h('h3');
    this.el = h('section.progress', { hidden: true, 'aria-live': 'polite' }, this.title, this.list);
    /** @type {Plan|null} */
    this.plan = null;
    this.begun = NaN;
    /** @type {string[]} */
    this.said = [];
    /** @type {number[]} */
    this.took = [];
  }

  /** @param {Plan} p */
  start(p) {
    this.plan = p;
    this.begun = performance.now();
    this.said = [];
    this.took = [];
    setText(this.title, p.title);
    this.list.replaceChildren(...p.steps.map((step) => h('li', { 'data-step': 'to come' }, h('span', {}, step.text), ' ', h('small'))));
    this.el.hidden = false;
  }

  /**
   * show notes what has been done.
   * @param {Lease} l
   * @param {number} now
   */
  show(l, now) {
    const { plan: p } = this;
    if (!p) return;
    const texts = p.steps.map((step, i) => this.said[i] || step.done(l));
    const reached = texts.findLastIndex((text) => text !== '');
    p.steps.forEach((step, i) => {
      const li = /** @type {HTMLElement} */ (this.list.children[i]), [text, time] = /** @type {HTMLElement[]} */ ([...li.children]);
      if (i <= reached && this.took[i] === undefined) {
        this.said[i] = texts[i] || step.text;
        this.took[i] = now - this.begun;
        setText(text, this.said[i]);
        setText(time, i === 0 ? '' : this.took[i] < 1000 ? 'at once' : `after ${duration(this.took[i])}`);
      }
      const is = i <= reached ? 'done' : i === reached + 1 ? 'now' : 'to come';
      if (li.dataset.step !== is) li.dataset.step = is;
    });
    const last = this.took[p.steps.length - 1];
    if (last !== undefined && now - this.begun - last > kept) this.end();
  }

  end() {
    this.plan = null;
    this.el.hidden = true;
  }
}
