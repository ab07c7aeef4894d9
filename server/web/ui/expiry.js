// @ts-check
// The bar that drains with a lease's time and is refilled by each renewal.
import { duration, h, setText } from './dom.js';

/** Expiry is a bar and the time in words. */
export class Expiry {
  /** @param {string} [role] */
  constructor(role) {
    this.bar = h('span.bar', { 'aria-hidden': 'true' });
    this.text = h('span');
    this.key = '';
    this.el = h('span.expiry', { role: role || null }, this.bar, this.text);
  }

  /**
   * @param {import('./model.js').Lease} l
   * @param {import('./model.js').Expiry} e
   * @param {number} now
   * @param {boolean} stale
   */
  show(l, e, now, stale) {
    const known = Boolean(l.holder) && !stale && !Number.isNaN(e.until) && e.ttl > 0;
    const left = known ? Math.min(e.until - now, e.ttl) : 0;
    const share = known ? Math.max(left / e.ttl, 0) : 0;
    const level = e.over && !stale ? 'over' : !known || share >= 1 / 3 ? 'fine' : left > 0 ? 'low' : 'over';
    const title = l.session && !stale ? `renewed with its session, ${l.session}` : '';
    const key = `${known} ${share.toFixed(3)} ${level} ${title}`; // what is written is laid out, even if it is the same
    if (key !== this.key) {
      this.key = key;
      this.el.classList.toggle('none', !known);
      this.bar.style.backgroundSize = `${(share * 100).toFixed(1)}% 100%`;
      this.el.dataset.level = level;
      this.el.title = title;
    }
    setText(this.text, words(l, e, known, left, stale));
  }
}

/**
 * @param {import('./model.js').Lease} l
 * @param {import('./model.js').Expiry} e
 * @param {boolean} known
 * @param {number} left
 * @param {boolean} stale
 */
function words(l, e, known, left, stale) {
  if (!l.holder) return '–';
  if (stale) return 'not known';
  if (e.over) return 'session over';
  if (!known) return l.session ? 'with its session' : 'not known';
  if (left <= 0) return `${duration(-left)} ago`;
  return `in ${e.exact ? '' : '≤ '}${duration(left)}`;
}
