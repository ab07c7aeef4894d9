// @ts-check
// The names: one row each, the worst first.
import { badge } from './badge.js';
import { duration, h, setText } from './dom.js';
import { Expiry } from './expiry.js';
import { Grid, grouped } from './grid.js';
import { Holder } from './holder.js';
import { alarming, holdersText, hostOf, kindText, outcome, pauseText, soleHolder, states, turnText } from './model.js';
import { parseQuery, termNames, withTerm } from './query.js';
import { Token } from './token.js';

/**
 * @typedef {import('./model.js').Row} Row
 * @typedef {import('./views.js').Context} Context
 */

/** @param {string} name */
export function detailPath(name) {
  return `#/${encodeURIComponent(name)}`;
}

/** @param {string} query */
export function namesPath(query) {
  return `#/?${new URLSearchParams({ q: query })}`;
}

const columns = [
  { id: 'state', title: 'State', sorts: true }, { id: 'name', title: 'Name', sorts: true }, { id: 'holder', title: 'Holder', sorts: true },
  { id: 'since', title: 'Held for', look: 'since', sorts: true }, { id: 'token', title: 'Token', look: 'token', sorts: true },
  { id: 'expires', title: 'Expires', sorts: true }, { id: 'waiters', title: 'Waiters', look: 'waiters', sorts: true },
];

/** By what names are grouped. @type {Record<string, {text: string, of: (row: Row, state: string) => string}>} */
const groupings = {
  prefix: { text: 'prefix', of: ({ lease: { name } }) => name.slice(0, name.lastIndexOf('/') + 1) },
  holder: { text: 'host', of: ({ lease: l }) => (soleHolder(l) ? hostOf(soleHolder(l), l.info) : holdersText(l)) },
  kind: { text: 'kind', of: ({ lease: l }) => kindText(l) || 'lease' },
  state: { text: 'state', of: (_row, state) => state },
};

/** Line is the elements of one row. */
class Line {
  /**
   * @param {string} name
   * @param {Names} names
   */
  constructor(name, names) {
    this.names = names;
    this.badge = h('span.badge');
    this.state = h('span.state', { role: 'cell' }, this.badge);
    this.link = h('a', { href: detailPath(name), title: name }, name);
    this.paused = h('span.tag', { hidden: true }, 'paused');
    this.kind = h('span.tag.kind', { hidden: true });
    this.turn = h('span.tag.turn', { hidden: true });
    this.holder = new Holder(h('span.holder', { role: 'cell' }));
    this.since = h('span.since', { role: 'cell' });
    this.token = new Token(true);
    this.expiry = new Expiry('cell');
    this.waiters = h('span.waiters', { role: 'cell' });
    this.el = h('div.row', { role: 'row' }, this.state, h('span.name', { role: 'cell' }, this.link, this.kind, this.turn, this.paused),
      this.holder.el, this.since, h('span.token', { role: 'cell' }, this.token.el), this.expiry.el, this.waiters);
    /** @type {Row|null} */
    this.of = null;
  }

  /** @param {string} name */
  reuse(name) {
    this.link.setAttribute('href', detailPath(name));
    this.link.title = name;
    setText(this.link, name);
    this.of = null;
  }

  /**
   * @param {Row} row
   * @param {number} now
   * @param {boolean} stale
   */
  show(row, now, stale) {
    const { model } = this.names.ctx, l = row.lease;
    const held = stale ? NaN : model.heldFor(l, now);
    const state = this.names.census.state.get(l.name) || 'unknown';
    badge(this.badge, state, '', stale);
    if (this.el.dataset.state !== state) this.el.dataset.state = state;
    if (this.of !== row) this.fixed(l, state);
    this.of = row;
    setText(this.since, Number.isNaN(held) ? '–' : duration(held));
    this.expiry.show(l, model.expiry(row), now, stale);
  }

  /**
   * fixed shows what stays while the record does.
   * @param {import('./model.js').Lease} l
   * @param {string} state
   */
  fixed(l, state) {
    const pause = l.paused ? `paused by ${pauseText(l.paused)}` : '';
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
    this.token.show(l.token);
    setText(this.waiters, l.waiters ? String(l.waiters) : '–');
    this.waiters.classList.toggle('some', l.waiters > 0);
  }
}

/** Names is the view at #/. */
export class Names {
  /**
   * @param {HTMLElement} root
   * @param {Context} ctx
   * @param {import('./model.js').Counter} counter
   * @param {() => string} waiting  what there is to say while nothing is known
   * @param {import('./views.js').Place} place
   */
  constructor(root, ctx, counter, waiting, place) {
    this.ctx = ctx;
    this.counter = counter;
    this.waiting = waiting;
    this.census = counter.last;
    this.of = ''; // what the rows were worked out of
    /** @type {Set<string>} */
    this.closed = new Set();
    this.sort = this.group = '';
    this.query = parseQuery('');
    this.search = /** @type {HTMLInputElement} */ (h('input', { id: 'search', type: 'search', autocomplete: 'off', spellcheck: 'false', placeholder: 'words, or state:jeopardy holder:web1 prefix:jobs/', 'aria-keyshortcuts': '/', 'aria-describedby': 'query-problem', list: 'terms' }));
    this.problem = h('p.problem', { id: 'query-problem', role: 'status', hidden: true });
    this.by = /** @type {HTMLSelectElement} */ (h('select', { onchange: () => ctx.set({ group: this.by.value }) },
      h('option', { value: '' }, 'nothing'), ...Object.entries(groupings).map(([value, { text }]) => h('option', { value }, text))));
    this.buttons = new Map(['', ...states].map((state) => [state, this.button(state)]));
    this.empty = h('div', { id: 'empty', hidden: true });
    this.grid = new Grid('Names', 'names', columns, (name) => new Line(name, this), (column) => this.sortBy(column), (group) => this.toggle(group));
    root.append(h('h2.unseen', {}, 'Names'),
      h('div.filters', { role: 'search' }, h('label.wide', {}, 'Find ', this.search), h('label', {}, 'Group by ', this.by),
        h('div', { id: 'states', role: 'group', 'aria-label': 'Show only one state' }, ...this.buttons.values())),
      this.problem, h('datalist', { id: 'terms' }, ...termNames.map((t) => h('option', { value: `${t}:` }))), this.grid.el, this.empty);
    this.search.addEventListener('input', () => ctx.set({ q: this.search.value.trim() }, true));
    this.update(place);
  }

  /** @param {import('./views.js').Place} place */
  update({ params }) {
    const q = params.get('q') || '';
    if (this.search.value.trim() !== q) this.search.value = q;
    this.query = parseQuery(q);
    this.problem.hidden = this.query.problem === '';
    setText(this.problem, this.query.problem);
    this.search.setAttribute('aria-invalid', String(!this.problem.hidden));
    this.sort = params.get('sort') || '';
    this.group = params.get('group') || '';
    if (!(this.group in groupings)) this.group = '';
    this.by.value = this.group;
    this.of = '';
    this.render(performance.now());
  }

  unmount() {
    this.grid.end();
  }

  /** @param {string} column */
  sortBy(column) {
    const next = this.sort === column ? `-${column}` : this.sort === `-${column}` ? '' : column;
    this.ctx.set({ sort: next === 'state' ? '' : next });
  }

  /** @param {string} group */
  toggle(group) {
    if (!this.closed.delete(group)) this.closed.add(group);
    this.of = '';
    this.render(performance.now());
  }

  /** @param {string} state */
  button(state) {
    return h('button.badge', {
      type: 'button', 'data-state': state || 'all', 'aria-pressed': 'false',
      onclick: () => {
        const on = this.query.states.length === 1 && this.query.states[0] === state;
        const word = { 'in jeopardy': 'jeopardy', 'handed over': 'handed-over' }[state] || state;
        this.ctx.set({ q: withTerm(this.search.value, 'state', on ? '' : word) });
        scrollTo(0, 0);
      },
    }, `${state || 'all'} `, h('b', {}, '0'));
  }

  /**
   * render works out which rows there are, and shows those in view.
   * @param {number} now
   */
  render(now) {
    const { model } = this.ctx, stale = model.staleFor(now) > 0;
    this.census = this.counter.count(now);
    const of = `${this.census.of} ${model.loaded} ${stale} ${this.waiting()}`;
    if (of !== this.of) {
      this.of = of;
      this.work(now, stale);
    }
    this.grid.place(now, stale);
  }

  /**
   * @param {number} now
   * @param {boolean} stale
   */
  work(now, stale) {
    const { model } = this.ctx, { census, query } = this;
    const counts = new Map(), rows = /** @type {import('./grid.js').Item<Row>[]} */ ([]);
    const anyState = query.states.length > 0 ? parseQuery(withTerm(this.search.value, 'state', '')) : query;
    for (const [state, names] of census.byState) {
      let n = anyState.empty ? names.length : 0;
      for (const name of names) {
        const row = model.rows.get(name);
        if (!row) continue;
        const subject = { lease: row.lease, state };
        if (!anyState.empty && anyState.fits(subject)) n++;
        if (query.empty || query.fits(subject)) rows.push({ key: name, of: row });
      }
      counts.set(state, n);
    }
    const all = [...counts.values()].reduce((sum, n) => sum + n, 0);
    for (const [state, button] of this.buttons) {
      const count = state ? counts.get(state) || 0 : all, on = state ? query.states.length === 1 && query.states[0] === state : query.states.length === 0;
      setText(/** @type {Node} */ (button.lastChild), count.toLocaleString('en'));
      button.hidden = !model.loaded || (count === 0 && !on);
      button.setAttribute('aria-pressed', String(on));
    }
    const column = this.sort.replace('-', ''), down = this.sort.startsWith('-');
    this.grid.order(column || 'state', down);
    if (column) this.sorted(rows, column, down);
    const { group } = this;
    this.grid.set(group ? grouped(rows, (row) => groupings[group].of(row, census.state.get(row.lease.name) || ''), this.closed, (list) => this.more(list)) : rows);
    this.empty.hidden = rows.length > 0;
    if (rows.length === 0) this.say(stale);
  }

  /** @param {import('./grid.js').Item<Row>[]} list */
  more(list) {
    const bad = list.filter((item) => alarming.includes(this.census.state.get(item.key) || '')).length;
    return `${list.length.toLocaleString('en')} ${list.length === 1 ? 'name' : 'names'}${bad > 0 ? `, ${bad.toLocaleString('en')} to look at` : ''}`;
  }

  /**
   * @param {import('./grid.js').Item<Row>[]} rows
   * @param {string} column
   * @param {boolean} down
   */
  sorted(rows, column, down) {
    const { model } = this.ctx;
    /** @type {Record<string, (row: Row) => string|number>} */
    const by = {
      name: ({ lease }) => lease.name, holder: ({ lease }) => soleHolder(lease) || '\uffff', since: ({ lease }) => (lease.acquired && lease.holder ? -Date.parse(lease.acquired) : Infinity),
      token: ({ lease }) => lease.token, expires: (row) => (row.lease.holder ? model.expiry(row).until : NaN), waiters: ({ lease }) => -lease.waiters,
    };
    const of = by[column];
    if (!of) return;
    const keyed = rows.map((item) => ({ item, by: of(/** @type {Row} */ (item.of)) }));
    const sign = down ? -1 : 1, last = (/** @type {string|number} */ v) => Number.isNaN(v) || v === Infinity || v === '\uffff';
    keyed.sort((a, b) => {
      if (last(a.by) || last(b.by)) return Number(last(a.by)) - Number(last(b.by)); // what has none comes last, either way
      return sign * (Number(a.by > b.by) - Number(a.by < b.by)) || Number(a.item.key > b.item.key) - Number(a.item.key < b.item.key);
    });
    keyed.forEach(({ item }, i) => { rows[i] = item; });
  }

  /**
   * say says why there is nothing to see; if nobody ever held anything, how to begin.
   * @param {boolean} stale
   */
  say(stale) {
    const { model } = this.ctx, prefix = this.ctx.prefix();
    const text = (/** @type {string} */ t) => this.empty.replaceChildren(h('p', {}, t));
    if (!model.loaded) return text(this.waiting());
    if (model.rows.size > 0) {
      const n = model.rows.size.toLocaleString('en');
      return text(this.query.states.length === 1 ? `None of the ${n} names that fits is ${this.query.states[0]}.` : `None of the ${n} names fits the search.`);
    }
    if (prefix) return text(`No name begins with “${prefix}”.`);
    if (stale) return text('No name was known when the store answered last.');
    return this.empty.replaceChildren(...firstRun());
  }
}

/** firstRun shows how to take a lease. */
export function firstRun() {
  const { origin } = location;
  const step = (/** @type {string} */ what, /** @type {string} */ code) => h('li', {}, what, h('pre', { tabindex: '0' }, h('code', {}, code)));
  return [h('h3', {}, 'Nobody holds anything yet'), h('p', {}, 'A name that is taken appears here at once. Three ways to take one:'), h('ol.first', {},
    step('Run a command while it holds a name; on two machines at once, one waits:', `leasehold run hello --store ${origin} -- sleep 60`),
    step('In a shell script:', `leasehold acquire hello --hold hello.hold --ttl 5m --store ${origin}`),
    step('Over HTTP, from any language:', `curl -X POST ${origin}/v1/leases/hello -H 'Content-Type: application/json' -d '{"holder": "me", "ttl": 30}'`))];
}
