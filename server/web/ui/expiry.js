// @ts-check
// The bar that drains with a lease's time and is refilled by each renewal.
import { duration, h, setText } from './dom.js';

/** Expiry is a bar and the time in words. */
export class Expiry {
  /** @param {string} [role] */
  constructor(role) {
    this.fill = h('i');
    this.text = h('span');
    this.el = h('span.expiry', { role: role || null }, h('span.bar', { 'aria-hidden': 'true' }, this.fill), this.text);
  }

  /**
   * @param {import('./model.js').Row} row
   * @param {number} now
   * @param {boolean} stale
   */
  show(row, now, stale) {
    const l = row.lease, ttl = (l.ttl || 0) * 1000;
    const known = !stale && !Number.isNaN(row.until) && ttl > 0;
    const left = known ? Math.min(row.until - now, ttl) : 0;
    const share = known ? Math.max(left / ttl, 0) : 0;
    this.el.classList.toggle('none', !known);
    this.fill.style.transform = `scaleX(${share.toFixed(4)})`;
    this.el.dataset.level = share < 1 / 3 ? 'low' : 'fine';
    setText(this.text, this.words(l, known, left, row.exact, stale));
  }

  /**
   * @param {import('./model.js').Lease} l
   * @param {boolean} known
   * @param {number} left
   * @param {boolean} exact
   * @param {boolean} stale
   */
  words(l, known, left, exact, stale) {
    if (!l.holder) return '–';
    if (stale) return 'not known';
    if (l.session) return 'with its session';
    if (!known) return 'not known';
    if (left <= 0) return `${duration(-left)} ago`;
    return `${exact ? '' : '≤ '}${duration(left)}`;
  }
}
