// @ts-check
// What the views of holders, sessions, elections, locks and pools have in common: a search, a table that sorts, and something to say when
// there is nothing.
import { badge } from './badge.js';
import { h, setText } from './dom.js';
import { Grid } from './grid.js';

/**
 * @template T
 * @typedef {object} Column
 * @property {string} id
 * @property {string} title
 * @property {string} [look]
 * @property {(of: T) => string|number} [by]  what it is sorted by; numbers the largest first
 * @property {(el: HTMLElement, of: T, now: number, stale: boolean) => void} show
 *
 * @template T
 * @typedef {object} Options
 * @property {string} title
 * @property {string} look
 * @property {string} about  a sentence
 * @property {string} empty
 * @property {Column<T>[]} columns  the first one has the link
 * @property {(of: T) => string} href
 * @property {(of: T) => string} text  of the link
 * @property {(now: number) => import('./grid.js').Item<T>[]} items  in their own order
 * @property {(of: T) => string} words  what is searched
 * @property {() => string} version    changes when the items do
 */

/**
 * state shows a state in a cell.
 * @param {HTMLElement} el
 * @param {string} state
 * @param {boolean} stale
 */
export function stateCell(el, state, stale) {
  if (!el.firstElementChild) el.append(h('span.badge'));
  badge(/** @type {HTMLElement} */ (el.firstElementChild), state, '', stale);
}

/** @template T */
export class List {
  /**
   * @param {HTMLElement} root
   * @param {import('./views.js').Context} ctx
   * @param {Options<T>} o
   * @param {() => string} waiting
   * @param {import('./views.js').Place} place
   */
  constructor(root, ctx, o, waiting, place) {
    this.ctx = ctx;
    this.o = o;
    this.waiting = waiting;
    this.of = this.sort = '';
    this.search = /** @type {HTMLInputElement} */ (h('input', { id: 'search', type: 'search', autocomplete: 'off', spellcheck: 'false', placeholder: 'words', 'aria-keyshortcuts': '/' }));
    this.search.addEventListener('input', () => ctx.set({ q: this.search.value.trim() }, true));
    this.grid = new Grid(o.title, o.look, o.columns.map((c) => ({ id: c.id, title: c.title, look: c.look, sorts: Boolean(c.by) })), (_key, of) => this.line(of), (column) => {
      ctx.set({ sort: this.sort === column ? `-${column}` : this.sort === `-${column}` ? '' : column });
    });
    this.empty = h('p', { id: 'empty', hidden: true });
    root.append(h('div.titled.view', {}, h('h2', {}, o.title), h('p.soft', {}, o.about)), h('div.filters', { role: 'search' }, h('label.wide', {}, 'Find ', this.search)), this.grid.el, this.empty);
    this.update(place);
  }

  /** @param {import('./views.js').Place} place */
  update({ params }) {
    const q = params.get('q') || '';
    if (this.search.value.trim() !== q) this.search.value = q;
    this.sort = params.get('sort') || '';
    this.of = '';
    this.render(performance.now());
  }

  unmount() {
    this.grid.end();
  }

  /**
   * @param {T} of
   * @returns {import('./grid.js').Line<T>}
   */
  line(of) {
    const { columns } = this.o;
    const link = h('a', { href: this.o.href(of) }), cells = columns.map((c, i) => h('span', { role: 'cell', class: `${c.look || ''}${i === 0 ? ' name' : ''}` || null }, i === 0 ? link : null));
    const el = h('div.row', { role: 'row' }, ...cells);
    return {
      el, link,
      reuse() {}, // all of it is shown again
      show: (now, at, stale) => {
        setText(link, this.o.text(now));
        link.setAttribute('href', this.o.href(now));
        columns.forEach((c, i) => c.show(cells[i], now, at, stale));
      },
    };
  }

  /** @param {number} now */
  render(now) {
    const stale = this.ctx.model.staleFor(now) > 0;
    const of = `${this.o.version()} ${this.waiting()}`;
    if (of !== this.of) {
      this.of = of;
      this.work(now);
    }
    this.grid.place(now, stale);
  }

  /** @param {number} now */
  work(now) {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let items = this.o.items(now);
    const n = items.length;
    if (words.length > 0) {
      items = items.filter(({ of }) => {
        const text = this.o.words(/** @type {T} */ (of)).toLowerCase();
        return words.every((w) => text.includes(w));
      });
    }
    const column = this.o.columns.find((c) => c.id === this.sort.replace('-', '')), sign = this.sort.startsWith('-') ? -1 : 1;
    this.grid.order(column?.id || '', this.sort.startsWith('-'));
    if (column?.by) {
      const by = column.by;
      const keyed = items.map((item) => ({ item, by: by(/** @type {T} */ (item.of)) }));
      keyed.sort((a, b) => sign * (typeof a.by === 'number' && typeof b.by === 'number' ? b.by - a.by : Number(a.by > b.by) - Number(a.by < b.by))
        || Number(a.item.key > b.item.key) - Number(a.item.key < b.item.key));
      items = keyed.map(({ item }) => item);
    }
    this.grid.set(items);
    this.empty.hidden = items.length > 0;
    if (items.length === 0) setText(this.empty, !this.ctx.model.loaded ? this.waiting() : n > 0 ? `None of the ${n.toLocaleString('en')} fits the search.` : this.o.empty);
  }
}
