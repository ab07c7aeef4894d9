// @ts-check
// The last changes: from the server's journal if it keeps one, else as the page has seen them itself.
import { duration, h, moment, setText } from './dom.js';
import { hostOf } from './model.js';
import { detailPath } from './names.js';
import { digits } from './token.js';

const apart = 15_000; // within which two of a kind are one, seen by the journal and by the page
const most = 40, ofOne = 4, every = 4_000, back = 6 * 3_600_000;

/**
 * @typedef {object} Change
 * @property {number} at    the server's time of day, in ms
 * @property {string} name
 * @property {string} what
 * @property {string} [whole]  with ids of holders whole
 * @property {string} level  good, warn, bad or ''
 * @property {number} [token]
 *
 * @typedef {import('./model.js').Lease} Lease
 */

/** Endings that somebody wanted. */
const wanted = /^(released|handed over|session ended)/;

/**
 * called is what a holder's id begins with, which most often is its host.
 * @param {string|undefined} id
 */
const called = (id) => hostOf(id || '');

/**
 * told is the same, with ids of holders short and whole.
 * @param {(id: (id: string|undefined) => string) => string} text
 */
const told = (text) => ({ what: text(called), whole: text((id) => id || '') });

/**
 * ended says how a hold ended.
 * @param {string|undefined} who
 * @param {string|undefined} why
 */
function ended(who, why) {
  if (why === 'released') return `${who} let go`;
  if (why === 'session ended') return `the session of ${who} ended`;
  return why?.startsWith('handed') ? `${who} handed it${why.slice('handed'.length)}` : `${who} lost it: ${why || 'ended'}`;
}

/**
 * ofSpans makes changes of what the journal says, the last first.
 * @param {import('./spans.js').Span[]} spans
 * @returns {Change[]}
 */
export function ofSpans(spans) {
  /** @type {Change[]} */
  const all = [];
  for (const one of spans) {
    const from = Date.parse(one.from), to = one.until ? Date.parse(one.until) : NaN, { name, token } = one;
    switch (one.kind) {
      case 'term':
      case 'share':
        all.push({ at: from, name, token, level: 'good', ...told((id) => `taken by ${id(one.holder)}`) });
        if (one.until) all.push({ at: to, name, token, level: wanted.test(one.ended || 'released') ? '' : 'bad', ...told((id) => ended(id(one.holder), one.ended)) });
        break;
      case 'expired':
        all.push({ at: from, name, level: 'bad', what: `expired: ${called(one.holder) || 'its holder'} has not renewed it` });
        break;
      case 'broken':
        all.push({ at: from, name, token: token || undefined, level: 'bad', what: `broken${one.note ? `: ${one.note}` : ''}` });
        break;
      case 'paused':
        all.push({ at: from, name, level: 'warn', what: `paused${one.holder ? ` by ${one.holder}` : ''}${one.note ? `: ${one.note}` : ''}` });
        if (one.until) all.push({ at: to, name, level: '', what: 'resumed' });
        break;
    }
  }
  return all.sort((a, b) => b.at - a.at);
}

/**
 * ofRows says what is between two states of a name; null for nothing that is told.
 * @param {Lease|undefined} before
 * @param {Lease|undefined} after
 * @returns {Omit<Change, 'at'>|null}
 */
export function ofRows(before, after) {
  const name = (after || before)?.name || '';
  if (!after) return before?.holder ? { name, level: '', what: 'its record was deleted' } : null;
  if (after.paused && !before?.paused) return { name, level: 'warn', what: `paused by ${after.paused.by}${after.paused.reason ? `: ${after.paused.reason}` : ''}` };
  if (!after.paused && before?.paused) return { name, level: '', what: 'resumed' };
  if (after.state === 'broken' && before?.state !== 'broken') return { name, token: after.token, level: 'bad', what: `broken${after.note ? `: ${after.note}` : ''}` };
  if (after.state === 'handed over' && before?.state !== 'handed over') return { name, token: after.token, level: '', ...told((id) => `handed to ${id(after.holder)}`) };
  if (after.holder && (after.token !== before?.token || after.holder !== before?.holder)) {
    return { name, token: after.token, level: 'good', ...told((id) => `taken by ${id(after.holder)}${before?.holder && before.holder !== after.holder ? `, after ${id(before.holder)}` : ''}`) };
  }
  if (!after.holder && before?.holder) return { name, token: before.token, level: '', ...told((id) => `${id(before.holder)} let go`) };
  return null;
}

/**
 * ago is roughly how long ago something was.
 * @param {number} ms
 */
function ago(ms) {
  if (ms < 1000) return 'just now';
  const text = duration(Math.max(Math.floor(ms / 1000), 0) * 1000);
  return `${text.replace('.0 s', ' s').split(' ').slice(0, 2).join(' ')} ago`;
}

/** Feed is the list. */
export class Feed {
  /** @param {import('./model.js').Model} model */
  constructor(model) {
    this.model = model;
    /** @type {Change[]} */
    this.seen = [];
    /** @type {Change[]|null} */
    this.told = null;
    this.asked = -Infinity;
    this.of = '';
    this.list = h('ol.feed');
    this.note = h('p.soft');
    this.el = h('section', { 'aria-labelledby': 'feed-title' }, h('div.titled', {}, h('h3', { id: 'feed-title' }, 'Last changes'), h('a', { href: '#timeline' }, 'Timeline')), this.list, this.note);
    model.changed = (before, after) => {
      const change = ofRows(before, after);
      if (!change) return;
      this.seen.unshift({ ...change, at: model.wall + performance.now() });
      if (this.seen.length > most) this.seen.pop();
    };
  }

  /** forget leaves nothing known. */
  forget() {
    this.seen = [];
    this.told = null;
    this.asked = -Infinity;
  }

  /** all are the last changes: the journal's, and what the page has seen since. Of one name there are a few, so that none crowds out others. */
  all() {
    /** @type {Map<string, Change>} */
    const known = new Map();
    const all = [], many = new Map();
    for (const c of [...(this.told || []), ...this.seen].sort((a, b) => b.at - a.at)) {
      const key = `${c.name}\n${c.what.split(' ')[0]}`, n = many.get(c.name) || 0, other = known.get(key);
      const same = other && (c.token && other.token ? c.token === other.token : other.at - c.at < apart);
      if (same || n >= ofOne) continue;
      known.set(key, c);
      many.set(c.name, n + 1);
      all.push(c);
      if (all.length === most) break;
    }
    return all;
  }

  /**
   * @param {import('./views.js').Context} ctx
   * @param {number} now
   * @param {boolean} journal  the server keeps one
   */
  render(ctx, now, journal) {
    if (journal && this.model.loaded && now - this.asked > every) {
      this.asked = now;
      const q = new URLSearchParams({ since: new Date(ctx.wall() - back).toISOString(), until: new Date(ctx.wall() + 60_000).toISOString(), prefix: ctx.prefix(), limit: '200' });
      void ctx.ask(`/v1/history?${q}`).then((r) => r.json()).then((page) => { this.told = ofSpans(page.spans); }, () => { /* what was told stays */ });
    }
    const all = this.all(), wall = ctx.wall();
    const of = `${all.length} ${all[0]?.at} ${all[0]?.name} ${journal}`;
    if (of !== this.of) {
      this.of = of;
      this.list.replaceChildren(...all.map((c) => h('li', { 'data-level': c.level, 'data-at': c.at }, h('i', { 'aria-hidden': 'true' }), h('time', { datetime: new Date(c.at).toISOString(), title: moment(new Date(c.at).toISOString()) }),
        h('a', { href: detailPath(c.name) }, c.name), h('span', { title: c.whole || c.what }, c.what), c.token ? h('small', {}, digits(c.token)) : null)));
      this.note.hidden = all.length > 0 && journal;
      setText(this.note, all.length === 0 ? (journal ? 'Nothing has changed in the last 6 h.' : 'Nothing has changed since this page was opened.')
        : 'Since this page was opened. A server with a journal knows earlier changes: leasehold serve --journal FILE');
    }
    for (const li of this.list.children) {
      const at = Number(/** @type {HTMLElement} */ (li).dataset.at);
      setText(/** @type {Node} */ (li.children[1]), ago(wall - at));
    }
  }
}
