// @ts-check
// The pools of identities, and who has which value of one.
import { duration, h, setText } from './dom.js';
import { Lazy } from './lazy.js';
import { List, stateCell } from './list.js';
import { detailPath } from './names.js';
import { openRelease } from './release.js';
import { Token } from './token.js';

/**
 * @typedef {object} Identity  as the API has it
 * @property {string} pool
 * @property {string} value
 * @property {number} number
 * @property {string} [as]
 * @property {string} state
 * @property {string} kept
 * @property {string} holder
 * @property {number} token
 * @property {number} [ttl]
 * @property {number} [expires_in]
 * @property {string} [session]
 *
 * @typedef {object} Pool
 * @property {string} pool
 * @property {string} [range]
 * @property {string[]} [names]
 * @property {string} [prefix]
 * @property {number} [bits]
 * @property {number} size
 * @property {number} held
 * @property {string} [layout]
 * @property {Identity[]} identities
 *
 * @typedef {import('./views.js').Context} Context
 */

/** @param {Pool} p */
function values(p) {
  if (p.range) return p.range;
  if (p.prefix) return `${p.prefix}, /${p.bits} each`;
  const names = p.names || [];
  return names.slice(0, 5).join(', ') + (names.length > 5 ? ` and ${names.length - 5} more` : '');
}

/** @param {string} pool */
const poolPath = (pool) => `/v1/identities/${encodeURIComponent(pool)}`;

/**
 * @param {HTMLElement} root
 * @param {Context} ctx
 * @param {import('./model.js').Counter} counter
 * @param {() => string} waiting
 * @param {import('./views.js').Place} place
 * @returns {import('./views.js').Mounted}
 */
export function pools(root, ctx, counter, waiting, place) {
  /** @type {Lazy<Pool>} */
  const known = new Lazy(ctx.ask, poolPath, 5_000);
  const show = (/** @type {import('./views.js').Place} */ at) => {
    root.replaceChildren();
    return at.rest ? onePool(root, ctx, known, at, waiting) : allPools(root, ctx, known, counter, waiting, at);
  };
  let shown = show(place), of = place.rest;
  return {
    update(next) {
      if (next.rest === of) return shown.update(next);
      shown.unmount();
      of = next.rest;
      shown = show(next);
    },
    render: (now) => shown.render(now),
    unmount: () => shown.unmount(),
  };
}

/**
 * @param {HTMLElement} root
 * @param {Context} ctx
 * @param {Lazy<Pool>} known
 * @param {import('./model.js').Counter} counter
 * @param {() => string} waiting
 * @param {import('./views.js').Place} place
 */
function allPools(root, ctx, known, counter, waiting, place) {
  const text = (/** @type {(p: Pool) => string} */ of) => (/** @type {HTMLElement} */ el, /** @type {string} */ pool, /** @type {number} */ now) => {
    const { value, problem } = known.get(pool, now);
    setText(el, value ? of(value) : problem || '…');
  };
  return new List(root, ctx, {
    title: 'Pools and ids', look: 'pools', about: 'What values there are, and how many of them somebody has. Values of a pool with a layout are numbers of machines in ids.', empty: 'No pool is declared here: leasehold id assign POOL --range 1-254',
    href: (/** @type {string} */ pool) => `#pools/${encodeURIComponent(pool)}`, text: (pool) => pool, words: (pool) => pool,
    version: () => `${counter.count(performance.now()).of} ${ctx.model.loaded}`,
    items: (now) => counter.count(now).names.filter((name) => ctx.model.rows.get(name)?.lease.kind === 'pool').map((name) => ({ key: name, of: name })),
    columns: [
      { id: 'name', title: 'Pool', by: (pool) => pool, show() {} },
      { id: 'values', title: 'Values', show: text(values) },
      { id: 'size', title: 'Size', look: 'number', show: text((p) => p.size.toLocaleString('en')) },
      { id: 'held', title: 'Taken', look: 'number', show: text((p) => p.held.toLocaleString('en')) },
      { id: 'free', title: 'Free', look: 'number', show: text((p) => (p.size - p.held).toLocaleString('en')) },
      { id: 'layout', title: 'Layout of its ids', show: text((p) => p.layout || '–') },
    ],
  }, waiting, place);
}

/**
 * @param {HTMLElement} root
 * @param {Context} ctx
 * @param {Lazy<Pool>} known
 * @param {import('./views.js').Place} place
 * @param {() => string} waiting
 */
function onePool(root, ctx, known, place, waiting) {
  const pool = place.rest, said = h('p.said', { role: 'status' });
  let may = false, version = 0;
  void ctx.ask(`/v1/whoami?name=${encodeURIComponent(pool)}`).then((r) => r.json()).then((me) => {
    may = me.may.includes('assign');
    version++;
  }, () => {});
  /** @type {WeakMap<HTMLElement, Token>} */
  const tokens = new WeakMap();
  root.append(h('p.back', {}, h('a', { href: '#pools' }, '← Pools')), said);
  let at = NaN;
  const list = new List(root, ctx, {
    title: pool, look: 'values', about: 'The values that somebody has.', empty: 'Nobody has a value of this pool.',
    href: (/** @type {Identity} */ of) => detailPath(`identity/${encodeURIComponent(of.pool)}/${encodeURIComponent(of.value)}`), text: (of) => of.value, words: (of) => `${of.value} ${of.as || ''} ${of.holder}`,
    version() {
      const now = performance.now(), entry = known.get(pool, now);
      if (entry.at !== at) version++;
      at = entry.at;
      return `${version} ${entry.problem}`;
    },
    items: (now) => (known.get(pool, now).value?.identities || []).map((of) => ({ key: of.value, of })),
    columns: [
      { id: 'value', title: 'Value', by: (of) => -of.number, show() {} },
      { id: 'as', title: 'Assigned to', by: (of) => of.as || '\uffff', show: (el, of) => setText(el, of.as || '–') },
      { id: 'state', title: 'State', by: (of) => of.state, show: (el, of, _now, stale) => stateCell(el, of.state, stale) },
      { id: 'holder', title: 'Holder', by: (of) => of.holder, show: (el, of) => setText(el, of.holder) },
      { id: 'kept', title: 'Kept', show: (el, of) => setText(el, of.kept === 'running' ? 'while it runs' : of.ttl ? `for ${duration(of.ttl * 1000)} after it was asked for` : 'for good') },
      { id: 'token', title: 'Token', look: 'token', show(el, of) {
        let token = tokens.get(el);
        if (!token) {
          tokens.set(el, token = new Token(true));
          el.append(token.el);
        }
        token.show(of.token);
      } },
      { id: 'act', title: 'Act', look: 'act', show(el, of) {
        if (!may) return el.replaceChildren();
        const key = `${of.value} ${of.token}`;
        if (el.dataset.key === key) return;
        el.dataset.key = key;
        el.replaceChildren(h('button.danger', { type: 'button', 'aria-label': `Release ${of.value}`, onclick: () => openRelease(of, (text) => {
          setText(said, text);
          known.forget(pool);
        }) }, 'Release…'));
      } },
    ],
  }, waiting, place);
  return list;
}
