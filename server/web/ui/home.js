// @ts-check
// The overview: how many names are how, how the store and the renewals do, what is wrong, and what changed last.
import { badge } from './badge.js';
import { duration, h, setText } from './dom.js';
import { alarming, soleHolder } from './model.js';
import { detailPath, firstRun, namesPath } from './names.js';
import { Spark } from './spark.js';
import { means } from './words.js';

const listed = 8; // names that are wrong

/**
 * @typedef {object} Known  what the page knows beside the stream
 * @property {import('./spark.js').Pulse} pulse
 * @property {import('./feed.js').Feed} feed
 * @property {() => boolean|null} measures  whether the measures may be read; null if that isn't known yet
 * @property {() => boolean} journal        whether the server keeps one
 */

const tiles = [
  { id: 'held', text: 'held', query: 'state:held', of: ['held', 'contended', 'in jeopardy'], level: '' },
  { id: 'waiting', text: 'waiting', query: 'waiters:>0', of: [], level: '' },
  { id: 'jeopardy', text: 'in jeopardy', query: 'state:jeopardy', of: ['in jeopardy'], level: 'warn' },
  { id: 'expired', text: 'not renewed', query: 'state:expired', of: ['expired'], level: 'bad' },
  { id: 'broken', text: 'broken', query: 'state:broken', of: ['broken'], level: 'bad' },
  { id: 'paused', text: 'paused', query: 'state:paused', of: ['paused'], level: 'warn' },
  { id: 'free', text: 'free', query: 'state:free', of: ['free'], level: '' },
];

/** Home is the view at #overview. */
export class Home {
  /**
   * @param {HTMLElement} root
   * @param {import('./views.js').Context} ctx
   * @param {import('./model.js').Counter} counter
   * @param {Known} known
   * @param {() => string} waiting
   */
  constructor(root, ctx, counter, known, waiting) {
    this.ctx = ctx;
    this.counter = counter;
    this.known = known;
    this.waiting = waiting;
    this.of = '';
    this.counts = new Map(tiles.map((t) => [t.id, h('b', {}, '–')]));
    this.tiles = h('ul.tiles', { 'aria-label': 'How many names' }, ...tiles.map((t) => h('li', { 'data-level': t.level, 'data-id': t.id }, h('a', { href: namesPath(t.query) }, /** @type {Node} */ (this.counts.get(t.id)), ` ${t.text}`))));
    this.latency = new Spark('The store takes', 'The 99th percentile of all operations, each 5 s', (v) => (v >= 1 ? `${v.toFixed(1)} s` : `${(v * 1000).toFixed(v < 0.01 ? 1 : 0)} ms`));
    this.margin = new Spark('Left at renewals', 'The share of the TTL that is left when a renewal succeeds: the 5th percentile, each 5 s. Below a third is jeopardy.', (v) => `${Math.round(v * 100)} %`, { most: 1, mark: 1 / 3 });
    this.wrong = h('ul.wrong');
    this.look = h('section', { 'aria-labelledby': 'look-title' }, h('div.titled', {}, h('h3', { id: 'look-title' }, 'To look at'), this.every = h('a', { href: namesPath('state:bad'), hidden: true }, 'All')), this.wrong);
    this.first = h('div.firstrun', { hidden: true });
    this.body = h('div.home', {}, this.tiles, h('div.sparks', {}, this.latency.el, this.margin.el), h('div.two', {}, this.look, known.feed.el));
    this.note = h('p.soft', { hidden: true });
    root.append(h('h2.unseen', {}, 'Overview'), this.note, this.first, this.body);
    this.render(performance.now());
  }

  /** @param {number} now */
  render(now) {
    const { ctx, known } = this, { model } = ctx, stale = model.staleFor(now) > 0;
    known.pulse.render(now, known.measures());
    const { points } = known.pulse;
    this.latency.show(points.map((p) => p.latency), known.pulse.why, known.pulse.begin.latency);
    this.margin.show(points.map((p) => p.margin), known.pulse.why, known.pulse.begin.margin);
    known.feed.render(ctx, now, known.journal());
    const census = this.counter.count(now);
    const empty = model.loaded && census.names.length === 0 && !ctx.prefix();
    this.body.hidden = !model.loaded || empty;
    this.note.hidden = model.loaded;
    if (!model.loaded) setText(this.note, this.waiting());
    if (this.first.hidden === empty) {
      this.first.hidden = !empty;
      this.first.replaceChildren(...(empty ? firstRun() : []));
    }
    if (!model.loaded) return;
    const of = `${census.of} ${stale}`;
    if (of !== this.of) {
      this.of = of;
      this.count(census);
    }
    this.list(census, now, stale);
  }

  /** @param {import('./model.js').Census} census */
  count(census) {
    for (const t of tiles) {
      const n = t.id === 'waiting' ? census.waiting : t.of.reduce((sum, s) => sum + (census.byState.get(s)?.length || 0), 0);
      const el = /** @type {HTMLElement} */ (this.counts.get(t.id));
      setText(el, n.toLocaleString('en'));
      el.closest('li')?.classList.toggle('none', n === 0);
    }
  }

  /**
   * @param {import('./model.js').Census} census
   * @param {number} now
   * @param {boolean} stale
   */
  list(census, now, stale) {
    const { model } = this.ctx;
    const names = alarming.flatMap((s) => census.byState.get(s) || []).slice(0, listed);
    const key = names.join('\n') || `none ${stale}`;
    if (this.wrong.dataset.key !== key) {
      this.every.hidden = names.length === 0;
      this.wrong.dataset.key = key;
      this.wrong.replaceChildren(...(names.length > 0 ? names.map((name) => h('li', { 'data-name': name }, h('span.badge'), h('a', { href: detailPath(name) }, name), h('p'))) : [h('li.none', {}, stale ? 'Nothing, when the store answered last.' : 'Nothing.')]));
    }
    names.forEach((name, i) => {
      const row = model.rows.get(name), [el, , text] = /** @type {HTMLElement[]} */ ([...this.wrong.children[i].children]);
      if (!row) return;
      const state = census.state.get(name) || '', e = model.expiry(row);
      badge(el, state, '', stale);
      const since = !stale && state === 'expired' && e.exact && Number.isFinite(e.until) ? ` It expired ${duration(Math.floor((now - e.until) / 1000) * 1000)} ago.` : '';
      setText(text, means(state, { ...row.lease, holder: soleHolder(row.lease) }, e, [], now, model.wall) + since);
    });
  }
}
