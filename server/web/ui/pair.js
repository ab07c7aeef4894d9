// @ts-check
// The view of a pair of `leasehold standby`: its Regions side by side, who is active and since when, what the passive ones wait for,
// their clocks, and the last switchovers. A switchover and a hold say first what they will do (pairorders.js).
import { ask, Problem } from './api.js';
import { badge } from './badge.js';
import { duration, h, moment, setText } from './dom.js';
import { gapOf, orders, pairPath } from './pairorders.js';

const reread = 2_000;
const patience = 10_000; // after which what was read is not current

/**
 * @typedef {{pod: string, region?: string, owner: string, status: string, waits_for?: string, clock_apart_seconds?: number}} Instance
 *
 * @typedef {object} Change
 * @property {string} [at]
 * @property {string} from
 * @property {string} to
 * @property {string} [why]
 * @property {number} [gap_seconds]
 * @property {number} [gap_at_most_seconds]
 *
 * @typedef {object} Pair
 * @property {string} lease
 * @property {string} state
 * @property {string} [pod]
 * @property {string} [region]
 * @property {string} [owner]
 * @property {string|number} token
 * @property {string} [since]
 * @property {string} [note]
 * @property {number} [ttl]
 * @property {boolean} [settled]
 * @property {Instance[]} [instances]
 * @property {string} [asked]
 * @property {Change[]} [changes]
 */

/** @param {Pair} p */
const holder = (p) => p.pod || p.owner || 'an instance';

/**
 * podText names a pod in a change.
 * @param {string} pod
 */
const podText = (pod) => (pod === 'SKIP-LEASE-POD' ? 'an operator’s hold' : pod || 'nobody');

/**
 * means says how the pair stands.
 * @param {Pair} p
 */
function means(p) {
  const where = p.region ? ` in ${p.region}` : '', ttl = p.ttl ? `${duration(p.ttl * 1000)} (the TTL)` : 'the TTL';
  switch (p.state) {
    case 'active':
      return `${holder(p)}${where} is active.`;
    case 'not active yet':
      return `${holder(p)}${where} holds the lease, and is not active yet.`;
    case 'held passive':
      return p.settled ? 'An operator holds every instance passive. Certainly none is active.'
        : 'An operator holds every instance passive. The one that was active before may not have noticed yet.';
    case 'resuming':
      return `The hold is over. An instance becomes active when ${ttl} has passed.`;
    case 'expired':
      return `${holder(p)}${where} has not renewed the lease for the TTL. No other instance has taken over yet.`;
    case 'handed over':
      return `The lease was given to ${holder(p)}, which has not confirmed it yet.`;
    case 'broken':
      return `An operator has ended the term of ${holder(p)}. Others take the lease when it lets go, or after ${ttl}.`;
    default:
      return 'No instance is active.';
  }
}

/**
 * gapText says for how long nobody was active.
 * @param {Change} c
 */
function gapText(c) {
  if (c.gap_seconds !== undefined) return gapOf(c.gap_seconds);
  return c.gap_at_most_seconds === undefined ? '–' : `${duration(c.gap_at_most_seconds * 1000)} at most`;
}

/**
 * clockText says how far a clock is from the store's.
 * @param {Instance} i
 */
const clockText = (i) => (i.clock_apart_seconds === undefined ? 'not told by this store'
  : i.clock_apart_seconds === 0 ? 'agrees with the store’s' : `at least ${duration(i.clock_apart_seconds * 1000)} from the store’s`);

/**
 * sides are the instances, by Region; one that holds the lease is among them, if it has answered or not.
 * @param {Pair} p
 */
function sides(p) {
  const all = [...p.instances || []];
  const instance = p.owner && !['held passive', 'resuming'].includes(p.state);
  if (instance && !all.some((i) => i.owner === p.owner)) all.push({ pod: holder(p), region: p.region, owner: p.owner || '', status: p.asked ? 'no answer' : 'not asked yet' });
  return all.sort((a, b) => `${a.region || '~'} ${a.pod}`.localeCompare(`${b.region || '~'} ${b.pod}`));
}

/** Shown is one pair on the page. */
class Shown {
  /**
   * @param {string} name
   * @param {import('./views.js').Context} ctx
   */
  constructor(name, ctx) {
    this.name = name;
    this.ctx = ctx;
    /** @type {Pair|null} */
    this.pair = null;
    /** @type {{caller: string, may: string[]}} */
    this.me = { caller: '', may: [] };
    this.readAt = this.triedAt = -Infinity;
    this.reading = this.over = false;
    this.drawn = '';
    this.badge = h('span.badge');
    this.meaning = h('p.meaning');
    this.note = h('p.said', { hidden: true });
    this.said = h('p.said', { role: 'status' });
    this.trouble = h('p.problem', { role: 'alert', hidden: true });
    this.refusal = h('p.hint', { id: 'pair-refusal', hidden: true });
    this.regions = h('div.regions');
    this.asked = h('p.hint');
    this.changes = h('div.scroll', { tabindex: '0', role: 'region', 'aria-label': 'The last changes' });
    this.entries = orders.map((order) => ({
      order, button: h(`button.${order.kind}`, { type: 'button', hidden: true, onclick: () => this.start(order) }, order.text),
    }));
    this.el = h(
      'article.pair', {},
      h('div.heading', {}, h('h2', {}, name), this.badge,
        h('div.actions', { role: 'group', 'aria-label': 'What can be done' }, ...this.entries.map(({ button }) => button)), this.meaning),
      this.trouble, this.note, this.said, this.refusal, this.regions, this.asked, h('h3', {}, 'The last changes'), this.changes,
    );
  }

  /** @param {import('./pairorders.js').Order} order */
  start(order) {
    if (!this.pair || this.refused(order)) return;
    order.open(this.pair, (said) => {
      setText(this.said, said);
      this.triedAt = -Infinity;
    });
  }

  get stale() { return performance.now() - this.readAt > patience; }

  /** @param {import('./pairorders.js').Order} order */
  refused(order) { return this.stale || !this.me.may.includes(order.action); }

  async read() {
    this.reading = true;
    this.triedAt = performance.now();
    try {
      const [pair, me] = await Promise.all([pairPath(this.name), `/v1/whoami?name=${encodeURIComponent(this.name)}`]
        .map(async (path) => (await this.ctx.ask(path)).json()));
      [this.pair, this.me, this.readAt] = [pair, me, performance.now()];
      this.trouble.hidden = true;
    } catch (err) {
      const age = this.pair ? ` What is shown is ${duration(performance.now() - this.readAt)} old.` : '';
      setText(this.trouble, `${err instanceof Problem ? err.message : 'The server can’t be reached'}.${age}`);
      this.trouble.hidden = false;
    } finally {
      this.reading = false;
    }
    if (!this.over) this.draw();
  }

  /** @param {number} now */
  render(now) {
    if (!this.reading && now - this.triedAt > reread) void this.read();
    this.draw();
  }

  draw() {
    const p = this.pair, wall = this.ctx.wall();
    if (!p) return;
    badge(this.badge, this.stale ? 'unknown' : p.state);
    const ago = p.since ? ` Since ${moment(p.since)}, ${duration(wall - Date.parse(p.since))} ago.` : '';
    setText(this.meaning, `${this.stale ? 'When it was last known: ' : ''}${means(p)}${ago}`);
    setText(this.note, p.note || '');
    this.note.hidden = !p.note;
    this.buttons(p);
    this.el.classList.toggle('old', this.stale);
    const asked = p.asked ? `The instances were asked ${duration(wall - Date.parse(p.asked))} ago, which is done every 15 s while this is open.`
      : 'The instances are being asked. Some look only every few seconds.';
    setText(this.asked, asked);
    const drawn = JSON.stringify([p, this.stale]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.regions.replaceChildren(...sides(p).map((i) => this.side(p, i)));
    this.changes.replaceChildren((p.changes || []).length > 0 ? table(p.changes || []) : h('p.empty', {}, 'None is known.'));
  }

  /** @param {Pair} p */
  buttons(p) {
    const offered = this.entries.filter(({ order }) => order.offered(p));
    const off = offered.filter(({ order }) => this.refused(order));
    for (const { order, button } of this.entries) {
      const refused = this.refused(order);
      button.hidden = !order.offered(p);
      button.setAttribute('aria-disabled', String(refused));
      if (refused) button.setAttribute('aria-describedby', 'pair-refusal');
      else button.removeAttribute('aria-describedby');
    }
    this.refusal.hidden = off.length === 0;
    const what = [...new Set(off.map(({ order }) => order.verb))].join(' or ');
    setText(this.refusal, this.stale ? 'Nothing can be done while what is shown is not current.'
      : `${this.me.caller || 'A caller who has not signed in'} may not ${what} here: the server’s policy does not allow it.`);
  }

  /**
   * @param {Pair} p
   * @param {Instance} i
   */
  side(p, i) {
    const holds = i.owner === p.owner, role = h('span.badge');
    badge(role, i.status);
    const facts = [['Pod', i.pod], holds && p.since ? ['Since', moment(p.since)] : null, i.waits_for ? ['Waits for', i.waits_for] : null,
      ['Clock', i.status.startsWith('no') ? 'not known' : clockText(i)], holds ? ['Token', String(p.token)] : null, ['Holder', i.owner]];
    return h(
      'section.region', { 'data-state': i.status, 'aria-label': `${i.pod}${i.region ? ` in ${i.region}` : ''}` },
      h('h3', {}, i.region || 'Region not told', role),
      h('dl', {}, ...facts.map((f) => (f ? h('div', {}, h('dt', {}, f[0]), h('dd', {}, f[1])) : null))),
    );
  }
}

/** @param {Change[]} all */
function table(all) {
  const head = ['At', 'From', 'To', 'Nobody active for', 'The term before'];
  return h(
    'table', {}, h('thead', {}, h('tr', {}, ...head.map((text) => h('th', { scope: 'col' }, text)))),
    h('tbody', {}, ...all.map((c) => h('tr', {}, h('td', {}, c.at ? moment(c.at) : 'not told'), h('td', {}, podText(c.from)), h('td', {}, podText(c.to)),
      h('td', {}, gapText(c)), h('td', {}, c.why || '–')))),
  );
}

/**
 * The view at #pair.
 * @type {import('./views.js').View}
 */
export const view = {
  id: 'pair', title: 'Standby',
  mount(el, ctx, place) {
    const list = h('nav.pairs', { 'aria-label': 'Pairs', hidden: true }), body = h('div', {}, h('p.empty', {}, 'Asking the server…'));
    /** @type {Shown|null} */
    let shown = null;
    let name = place.rest, listedAt = -Infinity, over = false;
    el.append(list, body);
    const show = (/** @type {string} */ next) => {
      if (shown) shown.over = true;
      shown = new Shown(next, ctx);
      body.replaceChildren(shown.el);
    };
    const seekAll = async () => {
      listedAt = performance.now();
      try {
        /** @type {{pairs: Pair[]}} */
        const { pairs } = await (await ctx.ask('/v1/pairs')).json();
        if (over) return;
        list.hidden = pairs.length < 2;
        list.replaceChildren(...pairs.map((p) => h('a', { href: `#pair/${encodeURIComponent(p.lease)}`, 'aria-current': p.lease === name ? 'page' : null }, `${p.lease}, ${p.state}`)));
        if (!name && pairs.length > 0 && !shown) show(pairs[0].lease);
        else if (pairs.length === 0 && !shown) {
          body.replaceChildren(h('p', { id: 'no-pairs' }, 'There is no pair here that you may read. An active and a passive instance of ', h('code', {}, 'leasehold standby'), ' are shown, once they have looked at their lease in this store.'));
        }
      } catch (err) {
        if (!over && !shown) body.replaceChildren(h('p.problem', { role: 'alert' }, err instanceof Error ? err.message : String(err)));
      }
    };
    if (name) show(name);
    return {
      update(next) {
        if (next.rest === name) return;
        name = next.rest;
        listedAt = -Infinity;
        if (name) show(name);
      },
      render(now) {
        if (now - listedAt > 5 * reread) void seekAll();
        shown?.render(now);
      },
      unmount() {
        over = true;
        if (shown) shown.over = true;
      },
    };
  },
};
