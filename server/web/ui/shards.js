// @ts-check
// Sharded spaces: who owns which part of each, what moves, and what one worker has.
import { duration, h, moment, s } from './dom.js';
import { scopeText } from './operator.js';
import { openDrain, openMove } from './shardorders.js';
import { hrefOf } from './views.js';

const every = 1_000; // between two looks
const width = 1_024, height = 40, tall = 72;
const busy = 5; // slices that are named as the busiest
const listed = 200; // slices of one worker
const colours = 12; // shard-0 to shard-11 in app.css

/**
 * @typedef {{slice: string, token?: number, worker?: string, session?: string, holder?: string, next?: string, asked?: string, load?: number}} Slice
 * @typedef {{worker: string, holder: string, session: string, address?: string, zone?: string, capacity: number, slices: number, coming: number, going: number, load?: number,
 *   leaving?: boolean, drained?: boolean, silent?: boolean, since: string}} Worker
 * @typedef {{space: string, hashed: boolean, slices: number, unowned: number, moving: number, assigner?: string, workers: Worker[], list: Slice[]}} Space
 * @typedef {{time: string, slice: string, token: number, why: string, worker?: string, before?: string}} Change
 */

/** The view at #shards. */
export const view = {
  id: 'shards', title: 'Shards', order: 65,
  /**
   * @param {HTMLElement} el
   * @param {import('./views.js').Context} ctx
   * @param {import('./views.js').Place} place
   */
  mount(el, ctx, place) {
    const page = new Shards(el, ctx);
    page.open(place);
    return { update: (/** @type {import('./views.js').Place} */ next) => page.open(next), unmount: () => page.close() };
  },
};
class Shards {
  /**
   * @param {HTMLElement} el
   * @param {import('./views.js').Context} ctx
   */
  constructor(el, ctx) {
    this.el = el;
    this.ctx = ctx;
    this.told = ''; // what was ordered last
    /** @type {import('./operator.js').Me|null} */
    this.me = null;
    this.said = ''; // what is shown, to change nothing that is the same
    this.looks = 0; // those that another one has overtaken show nothing
    /** @type {number|undefined} */
    this.timer = undefined;
  }

  /** @param {import('./views.js').Place} place */
  open(place) {
    if (this.space !== place.rest) {
      this.told = '';
      this.me = null;
    }
    this.space = place.rest;
    this.worker = place.params.get('worker') || '';
    this.said = '';
    this.close();
    void this.look();
  }

  close() {
    clearTimeout(this.timer);
    this.looks++;
  }

  async look() {
    const n = this.looks;
    let parts, text;
    try {
      if (this.space) {
        const path = `/v1/shards/${encodeURIComponent(this.space)}`;
        const [space, history] = await Promise.all([path, `${path}/history`].map(async (p) => (await this.ctx.ask(p)).json()));
        this.me ||= await (await this.ctx.ask(`/v1/whoami?name=${encodeURIComponent(`${this.space}/*`)}`)).json();
        text = JSON.stringify([space, history, this.told]);
        parts = () => this.ofSpace(space, history.changes);
      } else {
        const all = await (await this.ctx.ask('/v1/shards')).json();
        text = JSON.stringify(all);
        parts = () => list(all.spaces);
      }
    } catch (err) {
      const why = err instanceof Error ? err.message : String(err);
      text = why;
      parts = () => [h('h2', {}, 'Shards'), h('p.problem', { role: 'alert' }, why)];
    }
    if (n !== this.looks) return;
    if (text !== this.said) {
      this.said = text;
      this.el.replaceChildren(...parts());
    }
    this.timer = setTimeout(() => void this.look(), every);
  }

  /**
   * orders are the buttons for one worker, or why there are none.
   * @param {Space} space
   * @param {Worker} w
   */
  orders(space, w) {
    const { me } = this;
    if (!me?.may.includes('handoff')) {
      const where = me?.names ? ` It may: hand over ${scopeText(me.names.handoff || [])}.` : '';
      return h('p.hint', { id: 'refusal' }, `${me?.caller || 'A caller who has not signed in'} may not move slices here, or drain workers: the server’s policy does not allow it.${where}`);
    }
    const done = (/** @type {string} */ said) => {
      this.told = said;
      this.said = '';
    };
    const button = (/** @type {string} */ text, /** @type {typeof openMove} */ open) => h('button', { type: 'button', onclick: () => open(this.ctx.ask, space, w, done) }, text);
    return h('div.actions', { role: 'group', 'aria-label': 'What can be done' }, ...(w.slices > 0 ? [button('Move a slice…', openMove)] : []), button(w.drained ? 'Let it own slices…' : 'Drain…', openDrain));
  }

  /**
   * @param {Space} space
   * @param {Change[]} changes
   */
  ofSpace(space, changes) {
    const number = new Map(space.workers.map((w, i) => [w.session, i]));
    const chosen = space.workers.find((w) => w.holder === this.worker || w.worker === this.worker);
    const moves = space.list.filter((e) => e.next || e.asked);
    const what = space.hashed ? 'ranges' : 'names';
    const said = [`${space.slices.toLocaleString('en')} ${what}, ${space.workers.length} ${space.workers.length === 1 ? 'worker' : 'workers'}`];
    if (space.unowned > 0) said.push(`${space.unowned} that nobody owns`);
    if (space.moving > 0) said.push(`${space.moving} on the move`);
    if (!space.assigner) said.push('no worker assigns: nothing moves');
    const mine = chosen ? space.list.filter((e) => e.session === chosen.session) : [];
    return [
      h('p', {}, h('a', { href: hrefOf(view) }, 'All spaces')),
      h('h2', {}, space.space),
      h('p', {}, `${said.join('; ')}.`),
      h('p.soft', { role: 'status' }, this.told),
      map(space, number, chosen),
      ...heat(space, number, chosen),
      h('h3', {}, 'Workers'),
      workers(space, this.ctx.wall()),
      ...(chosen ? [h('h3', {}, `Slices of ${chosen.worker}`), this.orders(space, chosen), slices(mine.slice(0, listed), 'Slices'), mine.length > listed ? h('p.soft', {}, `… and ${mine.length - listed} more`) : null] : []),
      h('h3', {}, 'On the move'),
      moves.length > 0 ? slices(moves.slice(0, listed), 'On the move') : h('p.soft', {}, 'Nothing moves.'),
      h('h3', {}, 'Last moves'),
      table(['Time', 'Slice', 'What', 'From', 'To', 'Token'], changes.slice(0, 20).map((c) => [moment(c.time), c.slice, c.why, c.before || '–', c.worker || '–', String(c.token)]), 'Last moves'),
    ].filter((e) => e !== null);
  }
}

/** @param {Space[]} all */
function list(all) {
  if (all.length === 0) return [h('h2', {}, 'Shards'), h('p.soft', {}, 'No sharded spaces. The first worker makes one: leasehold shard run SPACE --shards 0-63 -- CMD')];
  const rows = all.map((one) => [h('a', { href: `${hrefOf(view)}/${encodeURIComponent(one.space)}` }, one.space), one.hashed ? 'hashes' : 'names',
    one.slices.toLocaleString('en'), String(one.unowned), String(one.moving), one.assigner || '–']);
  return [h('h2', {}, 'Shards'), table(['Space', 'Of', 'Slices', 'Unowned', 'Moving', 'Assigner'], rows, 'Spaces')];
}

/**
 * map draws the slices as ranges in the colours of their owners; the lower half of one that moves has the colour of where it goes.
 * @param {Space} space
 * @param {Map<string, number>} number of the workers, by session
 * @param {Worker|undefined} chosen
 */
function map(space, number, chosen) {
  const label = `Who owns what: ${space.workers.map((w) => `${w.worker} ${w.slices}`).join(', ') || 'nobody'}`;
  const svg = s('svg', { viewBox: `0 0 ${width} ${height}`, class: 'shards', role: 'img', 'aria-label': label, preserveAspectRatio: 'none' });
  const byName = new Map(space.workers.map((w, i) => [w.worker, i]));
  space.list.forEach((e, i) => {
    const owner = number.get(e.session || ''), { x, w } = place(space, e, i);
    const faded = chosen && e.session !== chosen.session ? ' faded' : '';
    const title = `${e.slice}: ${e.worker || 'nobody'}${e.token ? `, token ${e.token}` : ''}${e.next ? `, goes to ${e.next}` : ''}`;
    svg.append(s('rect', { x, y: 0, width: w, height, class: colour(owner) + faded, 'data-slice': e.slice }, s('title', {}, title)));
    if (e.next) svg.append(s('rect', { x, y: height / 2, width: w, height: height / 2, class: colour(byName.get(e.next)) + faded }));
  });
  return svg;
}

/**
 * place returns where a slice is drawn.
 * @param {Space} space
 * @param {Slice} e
 * @param {number} i
 */
function place(space, e, i) {
  const [from, to] = space.hashed ? hashes(e.slice) : [i / space.list.length, (i + 1) / space.list.length];
  return { x: from * width, w: Math.max((to - from) * width - (space.list.length < 300 ? 1 : 0), 0.2) };
}

/**
 * rate writes a load for people.
 * @param {number} load
 */
function rate(load) {
  return `${load.toLocaleString('en', { maximumSignificantDigits: 3 })}/s`;
}

/**
 * heat draws the load of each slice below where it is in the map, as its owner measured it; nothing where no worker reports any.
 * @param {Space} space
 * @param {Map<string, number>} number
 * @param {Worker|undefined} chosen
 */
function heat(space, number, chosen) {
  const most = Math.max(0, ...space.list.map((e) => e.load || 0)), total = space.list.reduce((sum, e) => sum + (e.load || 0), 0);
  if (most === 0) return [];
  const busiest = space.list.filter((e) => e.load).sort((a, b) => (b.load || 0) - (a.load || 0)).slice(0, busy);
  const label = `Load: ${rate(total)}, the busiest slice has ${rate(most)}`;
  const svg = s('svg', { viewBox: `0 0 ${width} ${tall}`, class: 'shards heat', role: 'img', 'aria-label': label, preserveAspectRatio: 'none' });
  space.list.forEach((e, i) => {
    const { x, w } = place(space, e, i), share = (e.load || 0) / most * tall;
    if (share === 0) return;
    svg.append(s('rect', { x, y: tall - share, width: w, height: share, class: colour(number.get(e.session || '')) + (chosen && e.session !== chosen.session ? ' faded' : ''), 'data-load': e.slice },
      s('title', {}, `${e.slice}: ${rate(e.load || 0)}, ${e.worker || 'nobody'}`)));
  });
  return [h('h3', {}, 'Load'), h('p.soft', {}, `${rate(total)} in all. The busiest is ${busiest[0].slice} of ${busiest[0].worker || 'nobody'}, with ${rate(most)}. Workers tell their load with their heartbeats.`), svg,
    ...(chosen ? [] : [slices(busiest, 'The busiest slices')])];
}

/** @param {number|undefined} worker */
function colour(worker) {
  return worker === undefined ? 'shard-none' : `shard-${worker % colours}`;
}

/**
 * hashes returns where a range begins and ends, from 0 to 1.
 * @param {string} id
 */
function hashes(id) {
  const [from, to] = id.split('-').map((part) => Number(BigInt(`0x${part}`)) / 2 ** 64);
  return [from, to];
}

/**
 * @param {Space} space
 * @param {number} wall
 */
function workers(space, wall) {
  const total = space.workers.reduce((sum, w) => sum + (w.load || 0), 0);
  const rows = space.workers.map((w, i) => {
    const state = w.silent ? 'silent' : w.leaving ? 'leaving' : w.drained ? (w.slices > 0 ? 'draining' : 'drained') : '–';
    const since = Date.parse(w.since), href = `${hrefOf(view)}/${encodeURIComponent(space.space)}?worker=${encodeURIComponent(w.holder)}`;
    const key = s('svg', { viewBox: '0 0 10 10', class: 'shard-key', 'aria-hidden': 'true' }, s('rect', { width: 10, height: 10, class: colour(i) }));
    return [h('span', {}, key, h('a', { href }, w.worker)), w.address || '–', w.zone || '–', String(w.capacity), String(w.slices), String(w.coming), String(w.going),
      ...(total > 0 ? [`${rate(w.load || 0)} (${Math.round((w.load || 0) / total * 100)} %)`] : []), state,
      since > 0 ? `${duration(wall - since)} ago` : '–'];
  });
  return table(['Worker', 'Address', 'Zone', 'Capacity', 'Slices', 'Coming', 'Going', ...(total > 0 ? ['Load'] : []), 'State', 'Joined'], rows, 'Workers');
}

/**
 * @param {Slice[]} all
 * @param {string} label
 */
function slices(all, label) {
  const loads = all.some((e) => e.load);
  const rows = all.map((e) => [e.slice, e.worker || '–', e.token ? String(e.token) : '–', ...(loads ? [e.load ? rate(e.load) : '–'] : []), e.next ? `→ ${e.next}` : e.asked ? `to ${e.asked}` : '–']);
  return table(['Slice', 'Worker', 'Token', ...(loads ? ['Load'] : []), 'Goes'], rows, label);
}

/**
 * @param {string[]} titles
 * @param {(Node|string)[][]} rows
 * @param {string} label
 */
function table(titles, rows, label) {
  return h('div.scroll', { role: 'region', 'aria-label': label, tabindex: 0 }, h('table', {}, h('thead', {}, h('tr', {}, ...titles.map((t) => h('th', { scope: 'col' }, t)))),
    h('tbody', {}, ...rows.map((row) => h('tr', {}, ...row.map((cell) => h('td', {}, cell)))))));
}
