// @ts-check
// A table of any length. Only the rows in view are elements, so that 10,000 rows cost what a screenful costs.
import { h, setText } from './dom.js';

const beyond = 8; // rows above and below the view that are there, too, to tab and scroll into

/**
 * @template T
 * @typedef {object} Column
 * @property {string} id
 * @property {string} title
 * @property {string} [look]     class of its cells
 * @property {boolean} [sorts]   whether its head sorts
 *
 * @template T
 * @typedef {object} Item  a row, or the head of a group
 * @property {string} key
 * @property {T} [of]
 * @property {string} [group]  what the group is called
 * @property {string} [more]   of a group: what is in it
 * @property {boolean} [open]
 *
 * @template T
 * @typedef {object} Line  the elements of a row
 * @property {HTMLElement} el
 * @property {HTMLElement} link  what has the focus
 * @property {(of: T, now: number, stale: boolean) => void} show
 * @property {(key: string) => void} [reuse]  has it stand for another row from now on, which is shown next
 */

/** @template T */
export class Grid {
  /**
   * @param {string} label
   * @param {string} look
   * @param {Column<T>[]} columns
   * @param {(key: string, of: T) => Line<T>} make
   * @param {(column: string) => void} sorted  a head was pressed
   * @param {(group: string) => void} [toggled]
   */
  constructor(label, look, columns, make, sorted, toggled) {
    this.make = make;
    this.toggled = toggled;
    /** @type {Item<T>[]} */
    this.items = [];
    /** @type {Map<string, Line<T>>} */
    this.lines = new Map();
    /** @type {Line<T>[]} of rows that have just gone out of view, to stand for those that come: a new row costs twenty elements */
    this.spare = [];
    this.heads = new Map(columns.map((c) => [c.id, h('span', { role: 'columnheader', class: c.look || null },
      c.sorts ? h('button', { type: 'button', onclick: () => sorted(c.id) }, c.title) : c.title)]));
    this.body = h('div', { id: 'rows', role: 'rowgroup' });
    this.el = h(`div.table.${look}`, { role: 'table', 'aria-label': label },
      h('div', { role: 'rowgroup' }, h('div.row.head', { role: 'row' }, ...this.heads.values())), this.body);
    this.height = 0;
    this.stop = new AbortController();
    this.body.addEventListener('keydown', (e) => this.key(e));
    let asked = false; // a frame
    const soon = () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame((now) => {
        asked = false;
        this.place(now, this.stale, false);
      });
    };
    addEventListener('scroll', soon, { passive: true, signal: this.stop.signal });
    addEventListener('resize', () => { this.height = 0; soon(); }, { passive: true, signal: this.stop.signal });
    this.stale = false;
  }

  /** end forgets the window. */
  end() {
    this.stop.abort();
  }

  /**
   * order says by what the rows are sorted.
   * @param {string} column
   * @param {boolean} down
   */
  order(column, down) {
    for (const [id, el] of this.heads) {
      if (el.firstElementChild) el.setAttribute('aria-sort', id !== column ? 'none' : down ? 'descending' : 'ascending');
    }
  }

  /** @param {Item<T>[]} items */
  set(items) {
    this.items = items;
    this.el.hidden = items.length === 0;
  }

  get rowHeight() {
    if (!this.height) this.height = parseFloat(getComputedStyle(this.body).getPropertyValue('--row')) || 36;
    return this.height;
  }

  /**
   * place puts the rows that are in view where they belong, and takes the others away.
   * @param {number} now
   * @param {boolean} stale
   * @param {boolean} [all]  also those that are there already are shown again
   */
  place(now, stale, all = true) {
    this.stale = stale;
    if (!this.el.isConnected) return;
    const height = this.rowHeight, n = this.items.length;
    const top = -this.body.getBoundingClientRect().top;
    const from = Math.max(Math.floor(top / height) - beyond, 0);
    const to = Math.max(Math.min(Math.ceil((top + innerHeight) / height) + beyond, n), from);
    const whole = `${n * height}px`;
    // What comes before the view is one measure of the body's: a place for each row would be a layer to consider for each.
    const before = `${Math.min(from, n) * height}px`;
    if (this.body.style.paddingTop !== before) this.body.style.paddingTop = before;
    if (this.body.style.height !== whole) {
      this.body.style.height = whole;
      this.el.setAttribute('aria-rowcount', String(n + 1));
    }
    const wanted = new Set();
    for (let i = from; i < Math.min(to, n); i++) wanted.add(this.items[i].key);
    const focused = document.activeElement;
    for (const [key, line] of this.lines) {
      if (wanted.has(key)) continue;
      this.lines.delete(key);
      if (line.reuse && !line.el.contains(focused)) this.spare.push(line);
      else line.el.remove();
    }
    let next = this.body.firstChild;
    for (let i = from; i < Math.min(to, n); i++) {
      const el = this.line(i, now, stale, all);
      if (el === next) next = next.nextSibling;
      else this.body.insertBefore(el, next);
    }
    for (const line of this.spare) line.el.remove();
    this.spare = [];
    // An element that is moved loses the focus.
    if (focused instanceof HTMLElement && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
  }

  /**
   * @param {number} i
   * @param {number} now
   * @param {boolean} stale
   * @param {boolean} all
   */
  line(i, now, stale, all) {
    const item = this.items[i];
    let line = this.lines.get(item.key);
    const fresh = !line;
    if (!line) this.lines.set(item.key, line = item.group !== undefined ? this.head(item.group) : this.row(item.key, /** @type {T} */ (item.of)));
    if (item.group !== undefined) {
      line.link.setAttribute('aria-expanded', String(item.open));
      setText(/** @type {Node} */ (line.el.lastChild), item.more || '');
    } else if (fresh || all) line.show(/** @type {T} */ (item.of), now, stale);
    const index = String(i + 2);
    if (line.el.getAttribute('aria-rowindex') !== index) line.el.setAttribute('aria-rowindex', index);
    return line.el;
  }

  /**
   * row is one that has gone out of view, else a new one.
   * @param {string} key
   * @param {T} of
   */
  row(key, of) {
    const line = this.spare.shift();
    if (!line) return this.make(key, of);
    line.reuse?.(key);
    return line;
  }

  /**
   * head is the row above a group.
   * @param {string} group
   * @returns {Line<T>}
   */
  head(group) {
    const link = h('button', { type: 'button', 'aria-expanded': 'true', onclick: () => this.toggled?.(group) }, group || '(none)');
    const el = h('div.row.group', { role: 'row' }, h('span', { role: 'cell' }, link), h('span.soft', { role: 'cell' }));
    return { el, link, show() {} };
  }

  /**
   * key moves from row to row.
   * @param {KeyboardEvent} e
   */
  key(e) {
    const page = Math.max(Math.floor(innerHeight / this.rowHeight) - 2, 1);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (!(e.key in steps) || e.ctrlKey || e.metaKey || e.altKey) return;
    const at = this.items.findIndex((item) => this.lines.get(item.key)?.link === e.target);
    if (at < 0) return;
    e.preventDefault();
    this.focus(Math.min(Math.max(at + steps[e.key], 0), this.items.length - 1));
  }

  /** @param {number} i */
  focus(i) {
    if (!this.items[i]) return;
    const height = this.rowHeight, head = height + 8; // the head of the table stays in view
    const y = this.body.getBoundingClientRect().top + i * height;
    if (y < head) scrollBy(0, y - head);
    else if (y + height > innerHeight) scrollBy(0, y + height - innerHeight);
    this.place(performance.now(), this.stale);
    this.lines.get(this.items[i].key)?.link.focus({ preventScroll: true });
  }

  /** @param {string} key */
  focusKey(key) {
    this.focus(Math.max(this.items.findIndex((item) => item.key === key), 0));
  }
}

/**
 * grouped puts items under the heads of their groups.
 * @template T
 * @param {Item<T>[]} items  in order
 * @param {(of: T) => string} group
 * @param {Set<string>} closed
 * @param {(all: Item<T>[]) => string} more
 * @returns {Item<T>[]}
 */
export function grouped(items, group, closed, more) {
  /** @type {Map<string, Item<T>[]>} */
  const groups = new Map();
  for (const item of items) {
    const g = group(/** @type {T} */ (item.of));
    const list = groups.get(g);
    if (list) list.push(item);
    else groups.set(g, [item]);
  }
  /** @type {Item<T>[]} */
  const all = [];
  for (const [g, list] of [...groups].sort(([a], [b]) => Number(a > b) - Number(a < b))) {
    const open = !closed.has(g);
    all.push({ key: `\n${g}`, group: g, open, more: more(list) });
    if (open) all.push(...list);
  }
  return all;
}
