// @ts-check
// The views of holders, sessions, elections and locks.
import { leasePath } from './api.js';
import { duration, h, setText } from './dom.js';
import { Drained, openDrain } from './drain.js';
import { Expiry } from './expiry.js';
import { Lazy } from './lazy.js';
import { List, stateCell } from './list.js';
import { alarming, hostOf, kindText, next as nextOf, pauseText, soleHolder, states } from './model.js';
import { detailPath, namesPath } from './names.js';
import { quoteTerm } from './query.js';

/**
 * @typedef {import('./model.js').Row} Row
 * @typedef {import('./model.js').Counter} Counter
 * @typedef {import('./views.js').Context} Context
 *
 * @typedef {object} Hold  of one holder: one name
 * @property {string} name
 * @property {string} holder
 * @property {string} session
 * @property {string} state
 *
 * @typedef {{host: string, holds: Hold[], worst: string, processes: number, sessions: number}} Host
 */

const few = 4; // names that are said of each

/** @param {string} state */
const rank = (state) => (states.indexOf(state) + 1 || states.length);

/**
 * holds returns every hold that there is, of a whole name or of a share.
 * @param {Context} ctx
 * @param {import('./model.js').Census} census
 */
function* holds({ model }, census) {
  for (const name of census.names) {
    const l = model.rows.get(name)?.lease, state = census.state.get(name) || '';
    if (!l) continue;
    if (l.holder) yield { name, holder: l.holder, host: hostOf(l.holder, l.info), session: l.session || '', state };
    for (const s of l.holders || []) yield { name, holder: s.holder, host: hostOf(s.holder), session: s.session || '', state };
  }
}

/**
 * named writes a few names as links, and how many more there are.
 * @param {HTMLElement} el
 * @param {string[]} names
 */
function named(el, names) {
  const key = `${names.length} ${names.slice(0, few).join('\n')}`;
  if (el.dataset.key === key) return;
  el.dataset.key = key;
  el.title = names.slice(0, 20).join('\n');
  el.replaceChildren(...names.slice(0, few).flatMap((name, i) => [i > 0 ? ', ' : '', h('a', { href: detailPath(name), tabindex: '-1' }, name)]),
    names.length > few ? ` and ${(names.length - few).toLocaleString('en')} more` : '');
}

/**
 * @param {HTMLElement} root
 * @param {Context} ctx
 * @param {Counter} counter
 * @param {() => string} waiting
 * @param {import('./views.js').Place} place
 * @param {(action: string, name: string) => boolean} mayOn
 * @returns {import('./views.js').Mounted}
 */
export function holders(root, ctx, counter, waiting, place, mayOn) {
  const drained = new Drained(ctx.model);
  /** @type {WeakMap<HTMLElement, Host>} what the button of a cell is about */
  const held = new WeakMap();
  const drain = (/** @type {Host} */ of) => openDrain({ host: of.host, leads: led(of), others: of.holds.map((o) => o.name).filter((name) => !led(of).some((l) => l.name === name)) },
    (name) => mayOn('handoff', name), (sent, failed) => drained.start(of.host, sent, failed)).catch((err) => drained.refuse(err));
  const led = (/** @type {Host} */ of) => of.holds.filter((o) => o.state === 'held' || o.state === 'contended' || o.state === 'in jeopardy')
    .map((o) => /** @type {Row} */ (ctx.model.rows.get(o.name))?.lease).filter((l) => l?.kind === 'election');
  const list = new List(root, ctx, {
    title: 'Holders', look: 'holders', about: 'What each host holds, that of which something is wrong first.', empty: 'Nobody holds anything.',
    href: (/** @type {Host} */ of) => namesPath(`host:${quoteTerm(of.host)}`), text: (of) => of.host, words: (of) => `${of.host} ${of.holds.map((o) => `${o.holder} ${o.name}`).join(' ')}`,
    version: () => `${counter.count(performance.now()).of} ${ctx.model.loaded}`,
    items(now) {
      /** @type {Map<string, Host>} */
      const hosts = new Map();
      for (const one of holds(ctx, counter.count(now))) {
        const host = hosts.get(one.host) || { host: one.host, holds: [], worst: 'held', processes: 0, sessions: 0 };
        hosts.set(one.host, host);
        host.holds.push(one);
        if (rank(one.state) < rank(host.worst)) host.worst = one.state;
      }
      for (const host of hosts.values()) {
        host.processes = new Set(host.holds.map((o) => o.holder)).size;
        host.sessions = new Set(host.holds.map((o) => o.session).filter(Boolean)).size;
        host.holds.sort((a, b) => rank(a.state) - rank(b.state));
      }
      return [...hosts.values()].sort((a, b) => rank(a.worst) - rank(b.worst) || b.holds.length - a.holds.length || Number(a.host > b.host) - Number(a.host < b.host)).map((of) => ({ key: of.host, of }));
    },
    columns: [
      { id: 'host', title: 'Host', by: (of) => of.host, show() {} },
      { id: 'worst', title: 'Worst', by: (of) => -rank(of.worst), show: (el, of, _now, stale) => stateCell(el, of.worst, stale) },
      { id: 'holds', title: 'Names', look: 'number', by: (of) => of.holds.length, show: (el, of) => setText(el, of.holds.length.toLocaleString('en')) },
      { id: 'bad', title: 'To look at', look: 'number', by: (of) => of.holds.filter((o) => alarming.includes(o.state)).length, show: (el, of) => setText(el, String(of.holds.filter((o) => alarming.includes(o.state)).length || '–')) },
      { id: 'processes', title: 'Processes', look: 'number', by: (of) => of.processes, show: (el, of) => setText(el, String(of.processes)) },
      { id: 'sessions', title: 'Sessions', look: 'number', by: (of) => of.sessions, show: (el, of) => setText(el, String(of.sessions || '–')) },
      { id: 'what', title: 'What it holds', look: 'long', show: (el, of) => named(el, of.holds.map((o) => o.name)) },
      { id: 'act', title: 'Act', look: 'act', show(el, of, _now, stale) {
        const offered = !stale && led(of).some((l) => mayOn('handoff', l.name));
        if (el.dataset.of === `${offered} ${of.host}`) return void held.set(el, of);
        held.set(el, of);
        el.dataset.of = `${offered} ${of.host}`;
        el.replaceChildren(...(offered ? [h('button', { type: 'button', 'aria-label': `Drain ${of.host}`, onclick: () => void drain(/** @type {Host} */ (held.get(el))) }, 'Drain…')] : []));
      } },
    ],
  }, waiting, place);
  root.querySelector('.titled')?.after(drained.el);
  return {
    update: (next) => list.update(next), unmount: () => list.unmount(),
    render(now) {
      list.render(now);
      drained.render(now);
    },
  };
}

/**
 * @typedef {{id: string, holder: string, names: string[], row: Row}} Kept
 *
 * @param {HTMLElement} root
 * @param {Context} ctx
 * @param {Counter} counter
 * @param {() => string} waiting
 * @param {import('./views.js').Place} place
 */
export function sessions(root, ctx, counter, waiting, place) {
  const { model } = ctx;
  /** @type {WeakMap<HTMLElement, Expiry>} */
  const bars = new WeakMap();
  const stateOf = (/** @type {Kept} */ of) => model.judge({ ...of.row, lease: { ...of.row.lease, state: 'held', waiters: 0, paused: undefined } });
  return new List(root, ctx, {
    title: 'Sessions', look: 'sessions', about: 'A session keeps all of its names by one renewal. If it ends, they end together.', empty: 'No session keeps a name.',
    href: (/** @type {Kept} */ of) => namesPath(`session:${quoteTerm(of.id)}`), text: (of) => of.id.replace(/^\.session\//, ''), words: (of) => `${of.id} ${of.holder} ${of.names.join(' ')}`,
    version: () => `${counter.count(performance.now()).of} ${model.loaded}`,
    items(now) {
      /** @type {Map<string, Kept>} */
      const all = new Map();
      for (const one of holds(ctx, counter.count(now))) {
        const row = model.rows.get(one.name);
        if (!one.session || !row) continue;
        const kept = all.get(one.session) || { id: one.session, holder: one.holder, names: [], row: { lease: { ...row.lease, holder: one.holder, session: one.session }, expiry: row.expiry } };
        all.set(one.session, kept);
        kept.names.push(one.name);
      }
      return [...all.values()].sort((a, b) => model.expiry(a.row).until - model.expiry(b.row).until || b.names.length - a.names.length).map((of) => ({ key: of.id, of }));
    },
    columns: [
      { id: 'session', title: 'Session', by: (of) => of.id, show() {} },
      { id: 'state', title: 'State', by: (of) => -rank(stateOf(of)), show: (el, of, _now, stale) => stateCell(el, stateOf(of), stale) },
      { id: 'names', title: 'Names', look: 'number', by: (of) => of.names.length, show: (el, of) => setText(el, of.names.length.toLocaleString('en')) },
      { id: 'expires', title: 'Expires', look: 'bars', by: (of) => -model.expiry(of.row).until, show(el, of, now, stale) {
        let bar = bars.get(el);
        if (!bar) {
          bars.set(el, bar = new Expiry());
          el.append(bar.el);
        }
        bar.show(of.row.lease, model.expiry(of.row), now, stale);
      } },
      { id: 'what', title: 'What it keeps', look: 'long', show: (el, of) => named(el, of.names) },
    ],
  }, waiting, place);
}

/**
 * leases are the rows of some kinds, the worst first.
 * @param {Context} ctx
 * @param {Counter} counter
 * @param {(l: import('./model.js').Lease) => boolean} of
 * @param {number} now
 */
function leases(ctx, counter, of, now) {
  const all = [];
  for (const names of counter.count(now).byState.values()) {
    for (const name of names) {
      const row = ctx.model.rows.get(name);
      if (row && of(row.lease)) all.push({ key: name, of: row });
    }
  }
  return all;
}

/**
 * common are columns of views of names.
 * @param {Counter} counter
 * @returns {Record<string, import('./list.js').Column<Row>>}
 */
function common(counter) {
  const stateOf = (/** @type {Row} */ of) => counter.last.state.get(of.lease.name) || 'unknown';
  return {
    name: { id: 'name', title: 'Name', by: (of) => of.lease.name, show() {} },
    state: { id: 'state', title: 'State', by: (of) => -rank(stateOf(of)), show: (el, of, _now, stale) => stateCell(el, stateOf(of), stale) },
  };
}

/**
 * @param {HTMLElement} root
 * @param {Context} ctx
 * @param {Counter} counter
 * @param {() => string} waiting
 * @param {import('./views.js').Place} place
 */
export function elections(root, ctx, counter, waiting, place) {
  /** @type {Lazy<import('./model.js').Lease>} */
  const more = new Lazy(ctx.ask, leasePath, 10_000);
  const known = (/** @type {Row} */ of, /** @type {number} */ now) => more.get(of.lease.name, now).value?.candidates;
  return new List(root, ctx, {
    title: 'Elections', look: 'elections', about: 'Who leads, who would be next, and what is paused.', empty: 'Nobody stands for election here: leasehold elect NAME -- COMMAND',
    href: (/** @type {Row} */ of) => detailPath(of.lease.name), text: (of) => of.lease.name, words: ({ lease }) => `${lease.name} ${lease.holder || ''}`,
    version: () => `${counter.count(performance.now()).of} ${ctx.model.loaded}`,
    items: (now) => leases(ctx, counter, (l) => l.kind === 'election' || Boolean(l.paused), now),
    columns: [
      common(counter).name, common(counter).state,
      { id: 'leader', title: 'Leader', by: ({ lease }) => lease.holder || '\uffff', show: (el, { lease }) => setText(el, lease.holder || (lease.paused ? `paused by ${pauseText(lease.paused)}` : 'nobody')) },
      { id: 'since', title: 'Leads for', look: 'number', by: ({ lease }) => (lease.holder && lease.acquired ? -Date.parse(lease.acquired) : -Infinity),
        show: (el, { lease }, now, stale) => setText(el, lease.holder && lease.acquired && !stale ? duration(ctx.model.heldFor(lease, now)) : '–') },
      { id: 'candidates', title: 'Candidates', look: 'number', show: (el, of, now) => setText(el, String(known(of, now)?.length ?? '…')) },
      { id: 'next', title: 'Next', show(el, of, now) {
        const all = known(of, now), next = all && nextOf({ ...of.lease, candidates: all });
        setText(el, !all ? '…' : next ? `${next.name}${next.zone ? `, ${next.zone}` : ''}` : 'nobody: no other candidate may lead');
      } },
    ],
  }, waiting, place);
}

/**
 * @typedef {{waiters: {holder: string, waited: number}[]}} Queue
 *
 * @param {HTMLElement} root
 * @param {Context} ctx
 * @param {Counter} counter
 * @param {() => string} waiting
 * @param {import('./views.js').Place} place
 */
export function locks(root, ctx, counter, waiting, place) {
  /** @type {Lazy<Queue>} */
  const queues = new Lazy(ctx.ask, (name) => leasePath(name, 'waiters'), 3_000);
  return new List(root, ctx, {
    title: 'Locks', look: 'locks', about: 'Who holds what, and who waits for it at this server, the longest queue first.', empty: 'No lock is known.',
    href: (/** @type {Row} */ of) => detailPath(of.lease.name), text: (of) => of.lease.name, words: ({ lease }) => `${lease.name} ${lease.holder || ''} ${kindText(lease)}`,
    version: () => `${counter.count(performance.now()).of} ${ctx.model.loaded}`,
    items(now) {
      const all = leases(ctx, counter, (l) => l.kind !== 'election' && l.kind !== 'pool', now);
      const waited = all.filter((i) => i.of.lease.waiters > 0).sort((a, b) => b.of.lease.waiters - a.of.lease.waiters);
      return [...waited, ...all.filter((i) => i.of.lease.waiters === 0)];
    },
    columns: [
      common(counter).name, common(counter).state,
      { id: 'kind', title: 'Kind', by: ({ lease }) => kindText(lease) || 'lease', show: (el, { lease }) => setText(el, kindText(lease) || 'lease') },
      { id: 'holder', title: 'Held by', by: ({ lease }) => soleHolder(lease) || '\uffff', show: (el, { lease }) => setText(el, shares(lease)) },
      { id: 'waiters', title: 'Waiters', look: 'number', by: ({ lease }) => lease.waiters, show: (el, { lease }) => setText(el, lease.waiters ? String(lease.waiters) : '–') },
      { id: 'queue', title: 'The queue, first come first', look: 'long', show(el, { lease }, now) {
        const { value, problem } = lease.waiters > 0 ? queues.get(lease.name, now) : { value: undefined, problem: '' };
        const all = lease.waiters > 0 ? value?.waiters || [] : [];
        setText(el, problem || all.slice(0, few).map((w, i) => `${i + 1}. ${w.holder} (${duration(w.waited * 1000)})`).join(', ') + (all.length > few ? ` and ${all.length - few} more` : '') || '–');
      } },
    ],
  }, waiting, place);
}

/** @param {import('./model.js').Lease} l */
function shares(l) {
  const all = l.holders || [];
  if (l.kind === 'semaphore') return `${all.length} of ${l.limit ?? '?'} slots${all.length > 0 ? `: ${all.slice(0, few).map((s) => s.holder).join(', ')}` : ''}`;
  if (all.length > 0) return `${all.length === 1 ? '' : `${all.length}: `}${all.slice(0, few).map((s) => `${s.holder}${s.mode ? ` (${s.mode})` : ''}`).join(', ')}`;
  return l.holder || '–';
}
