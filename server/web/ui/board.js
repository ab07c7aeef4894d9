// @ts-check
// The board: one row a name. Only the rows in view are elements, so that 10,000 names cost what a screenful costs.
import { badge } from './badge.js';
import { byID, duration, h, inputByID, setText } from './dom.js';
import { Expiry } from './expiry.js';
import { Holder } from './holder.js';
import { holdersText, kindText, outcome, pauseText, soleHolder, states, turnText } from './model.js';

/** States in which somebody should look at a name. */
const alarming = ['expired', 'in jeopardy', 'broken'];

const beyond = 8; // rows above and below the view that are there, too, to tab and scroll into

/** @param {string} name */
export function detailPath(name) {
  return `#/${encodeURIComponent(name)}`;
}

/** View is the elements of one row. */
class View {
  /** @param {string} name */
  constructor(name) {
    this.badge = h('span.badge');
    this.state = h('span.state', { role: 'cell' }, this.badge);
    this.link = h('a', { href: detailPath(name), title: name }, name);
    this.paused = h('span.tag', { hidden: true }, 'paused');
    this.kind = h('span.tag.kind', { hidden: true });
    this.turn = h('span.tag.turn', { hidden: true });
    this.holder = new Holder(h('span.holder', { role: 'cell' }));
    this.since = h('span.since', { role: 'cell' });
    this.token = h('span.token', { role: 'cell' });
    this.expiry = new Expiry('cell');
    this.waiters = h('span.waiters', { role: 'cell' });
    this.el = h('div.row', { role: 'row' }, this.state, h('span.name', { role: 'cell' }, this.link, this.kind, this.turn, this.paused),
      this.holder.el, this.since, this.token, this.expiry.el, this.waiters);
  }

  /**
   * @param {import('./model.js').Row} row
   * @param {string} state
   * @param {import('./model.js').Model} model
   * @param {number} now
   * @param {boolean} stale
   */
  show(row, state, model, now, stale) {
    const l = row.lease;
    const held = stale ? NaN : model.heldFor(l, now);
    badge(this.badge, state);
    this.badge.title = stale ? `it was ${l.state}` : '';
    this.el.dataset.state = state;
    const pause = l.paused && !stale ? `paused by ${pauseText(l.paused)}` : '';
    this.paused.hidden = pause === '' || state === 'paused';
    this.paused.title = pause;
    const kind = kindText(l);
    this.kind.hidden = kind === '';
    setText(this.kind, kind);
    this.turn.hidden = !l.turn;
    this.turn.dataset.turn = l.turn ? l.turn.state : '';
    this.turn.title = l.turn ? `The last turn: ${turnText(l.turn)}` : '';
    setText(this.turn, l.turn ? outcome(l.turn) : '');
    this.holder.show(soleHolder(l), pause || holdersText(l));
    setText(this.since, Number.isNaN(held) ? '–' : duration(held));
    setText(this.token, l.token ? String(l.token) : '–');
    setText(this.waiters, l.waiters ? String(l.waiters) : '–');
    this.waiters.classList.toggle('some', l.waiters > 0);
    this.expiry.show(l, model.expiry(row), now, stale);
  }
}

/**
 * @param {import('./model.js').Lease} l
 * @param {string[]} words in small letters
 */
function fits(l, words) {
  const text = `${l.name} ${l.holder || ''} ${(l.holders || []).map((s) => s.holder).join(' ')} ${kindText(l)}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** Board shows a model. */
export class Board {
  /** @param {import('./model.js').Model} model */
  constructor(model) {
    this.model = model;
    this.rows = byID('rows');
    /** @type {Map<string, View>} */
    this.views = new Map();
    /** @type {string[]} */
    this.names = []; // all, in order
    this.namesOf = -1; // the model.names that they are of
    /** @type {string[]} */
    this.shown = []; // those that pass the filters, the worst first
    this.state = ''; // the only one to show
    this.of = ''; // what the rows were worked out of
    this.worst = 0; // names that want to be looked at
    this.waiting = 'Asking the server…'; // what there is to say while nothing is known
    this.buttons = new Map(['', ...states].map((state) => [state, this.button(state)]));
    byID('states').append(...this.buttons.values());
    inputByID('search').addEventListener('input', () => this.render());
    this.rows.addEventListener('keydown', (e) => this.key(e));
    for (const event of ['scroll', 'resize']) addEventListener(event, () => this.place(performance.now()), { passive: true });
  }

  /** @param {string} state */
  button(state) {
    const count = h('b', {}, '0');
    return h('button.badge', {
      type: 'button', 'data-state': state || 'all', 'aria-pressed': 'false',
      onclick: () => {
        this.state = this.state === state ? '' : state;
        this.render();
        scrollTo(0, 0);
      },
    }, `${state || 'all'} `, count);
  }

  get visible() {
    return !byID('board').hidden;
  }

  /** render works out which rows there are, and shows those in view. */
  render() {
    if (!this.visible) return;
    const { model } = this;
    const now = performance.now();
    const of = `${model.version} ${model.staleFor(now) > 0} ${this.state} ${this.waiting} ${inputByID('search').value}`;
    if (of === this.of) {
      this.place(now);
      return;
    }
    this.of = of;
    if (this.namesOf !== model.names) {
      this.names = [...model.rows.keys()].sort();
      this.namesOf = model.names;
    }
    const stale = model.staleFor(now) > 0;
    const words = inputByID('search').value.toLowerCase().split(/\s+/).filter(Boolean);
    const byState = new Map(states.map((state) => [state, /** @type {string[]} */ ([])]));
    for (const name of this.names) {
      const row = /** @type {import('./model.js').Row} */ (model.rows.get(name));
      if (words.length === 0 || fits(row.lease, words)) byState.get(model.judge(row, stale))?.push(name);
    }
    this.worst = stale ? 0 : alarming.reduce((n, state) => n + (byState.get(state)?.length || 0), 0);
    const all = [...byState.values()].flat();
    for (const [state, button] of this.buttons) {
      const count = state ? byState.get(state)?.length || 0 : all.length;
      setText(/** @type {Node} */ (button.lastChild), count.toLocaleString('en'));
      button.hidden = count === 0 && (stale || state !== this.state || !model.loaded);
      button.setAttribute('aria-pressed', String(state === this.state));
    }
    // Of what is stale no state is known, so that none can be picked.
    this.shown = this.state && !stale ? byState.get(this.state) || [] : all;
    this.say(words.length > 0);
    this.place(now);
  }

  /** @param {boolean} sought */
  say(sought) {
    const empty = byID('empty'), table = /** @type {HTMLElement} */ (this.rows.parentElement);
    table.hidden = this.shown.length === 0;
    empty.hidden = !table.hidden;
    if (table.hidden) setText(empty, this.why(sought));
  }

  /**
   * why says why there is nothing to see.
   * @param {boolean} sought
   */
  why(sought) {
    const { model } = this, prefix = inputByID('prefix').value.trim();
    if (!model.loaded) return this.waiting;
    if (model.rows.size > 0) return `None of the ${model.rows.size.toLocaleString('en')} names ${sought ? 'fits the search' : `is ${this.state} now`}.`;
    if (prefix) return `No name begins with “${prefix}”.`;
    return 'Nobody holds anything here, and nobody ever did. A lease that is taken appears at once: leasehold run NAME -- COMMAND';
  }

  get rowHeight() {
    return parseFloat(getComputedStyle(this.rows).getPropertyValue('--row')) || 44;
  }

  /**
   * place puts the rows that are in view where they belong, and takes the others away.
   * @param {number} now
   */
  place(now) {
    if (!this.visible) return;
    const height = this.rowHeight, n = this.shown.length;
    const top = -this.rows.getBoundingClientRect().top;
    const from = Math.max(Math.floor(top / height) - beyond, 0);
    const to = Math.min(Math.ceil((top + innerHeight) / height) + beyond, n);
    this.rows.style.height = `${n * height}px`;
    this.rows.parentElement?.setAttribute('aria-rowcount', String(n + 1));
    const wanted = new Set(this.shown.slice(from, to));
    const focused = document.activeElement;
    for (const [name, view] of this.views) {
      if (!wanted.has(name)) {
        view.el.remove();
        this.views.delete(name);
      }
    }
    const stale = this.model.staleFor(now) > 0;
    let next = this.rows.firstChild;
    for (let i = from; i < to; i++) {
      const view = this.show(i, i * height, now, stale);
      if (view.el === next) next = next.nextSibling;
      else this.rows.insertBefore(view.el, next);
    }
    // An element that is moved loses the focus.
    if (focused instanceof HTMLElement && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  }

  /**
   * @param {number} i
   * @param {number} y
   * @param {number} now
   * @param {boolean} stale
   */
  show(i, y, now, stale) {
    const name = this.shown[i];
    let view = this.views.get(name);
    if (!view) this.views.set(name, view = new View(name));
    const row = this.model.rows.get(name);
    if (row) view.show(row, this.model.judge(row, stale), this.model, now, stale);
    view.el.style.transform = `translateY(${y}px)`;
    view.el.setAttribute('aria-rowindex', String(i + 2));
    return view;
  }

  /**
   * key moves from row to row.
   * @param {KeyboardEvent} e
   */
  key(e) {
    const page = Math.max(Math.floor(innerHeight / this.rowHeight) - 2, 1);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const at = this.shown.findIndex((name) => this.views.get(name)?.link === e.target);
    if (!(e.key in steps) || at < 0 || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    this.focus(Math.min(Math.max(at + steps[e.key], 0), this.shown.length - 1));
  }

  /** @param {number} i */
  focus(i) {
    const height = this.rowHeight, head = height + 8; // the head of the table stays in view
    const y = this.rows.getBoundingClientRect().top + i * height;
    if (y < head) scrollBy(0, y - head);
    else if (y + height > innerHeight) scrollBy(0, y + height - innerHeight);
    this.place(performance.now());
    this.views.get(this.shown[i])?.link.focus({ preventScroll: true });
  }
}
