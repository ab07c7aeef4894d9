// @ts-check
// What is typed to find names: words, and terms such as state:jeopardy, holder:web1, prefix:jobs/.
import { hostOf, kindText, states } from './model.js';

/**
 * @typedef {object} Subject  what a query is asked about
 * @property {import('./model.js').Lease} lease
 * @property {string} state
 *
 * @typedef {object} Query
 * @property {(s: Subject) => boolean} fits
 * @property {string} problem   what is wrong with it; '' if nothing is
 * @property {string[]} states  that it asks for; none for any
 * @property {boolean} empty
 */

/** What a state may be called. @type {Record<string, string[]>} */
const called = {
  jeopardy: ['in jeopardy'], 'in-jeopardy': ['in jeopardy'], handed: ['handed over'], 'handed-over': ['handed over'],
  bad: ['expired', 'in jeopardy', 'broken', 'unreadable'], waiting: ['contended'],
};
const allStates = [...states, 'unreadable'];

/** @param {string} text */
const low = (text) => text.toLowerCase();

/** @param {import('./model.js').Lease} l */
const holders = (l) => [l.holder || '', ...(l.holders || []).map((s) => s.holder)];

/** The terms: what each asks of a name. @type {Record<string, (value: string) => ((s: Subject) => boolean)|string>} */
const terms = {
  state(value) {
    const wanted = called[value] || (allStates.includes(value) ? [value] : null);
    return wanted ? (s) => wanted.includes(s.state) : `no state is called ${value}: ${allStates.map((s) => called[s.replace('in ', '')] ? s.replace('in ', '') : s.replace(' ', '-')).join(', ')}, or bad`;
  },
  holder: (value) => ({ lease }) => holders(lease).some((id) => low(id).includes(value)),
  host: (value) => ({ lease }) => hostsOf(lease).some((host) => low(host) === value),
  prefix: (value) => ({ lease }) => low(lease.name).startsWith(value),
  name: (value) => ({ lease }) => low(lease.name).includes(value),
  session: (value) => ({ lease }) => low(lease.session || '').includes(value) || (lease.holders || []).some((s) => low(s.session || '').includes(value)),
  kind(value) {
    const kinds = { lease: '', rw: 'rw', semaphore: 'semaphore', election: 'election', pool: 'pool' };
    if (!(value in kinds)) return `no kind is called ${value}: ${Object.keys(kinds).join(', ')}`;
    const wanted = kinds[/** @type {keyof kinds} */ (value)];
    return ({ lease }) => (lease.kind === 'lease' ? '' : lease.kind || '') === wanted;
  },
  token: (value) => (/^\d+$/.test(value) ? ({ lease }) => String(lease.token).endsWith(value) : `${value} is no token: digits, the last ones are enough`),
  waiters(value) {
    const m = /^(>=|<=|>|<|=)?(\d+)$/.exec(value);
    if (!m) return `${value} is no number: write waiters:2, or waiters:>0`;
    const n = Number(m[2]);
    return ({ lease: { waiters } }) => ({ '>': waiters > n, '<': waiters < n, '>=': waiters >= n, '<=': waiters <= n })[m[1]] ?? waiters === n;
  },
};

export const termNames = Object.keys(terms);

/**
 * hostsOf returns on which hosts a name is held.
 * @param {import('./model.js').Lease} l
 */
function hostsOf(l) {
  return l.holders?.length ? l.holders.map((s) => hostOf(s.holder)) : [hostOf(l.holder || '', l.info)];
}

/**
 * parseQuery reads a query. What has a mistake finds nothing less: the term that is wrong is left out, and said.
 * @param {string} text
 * @returns {Query}
 */
export function parseQuery(text) {
  const problems = [], wanted = /** @type {string[]} */ ([]);
  const all = /** @type {((s: Subject) => boolean)[]} */ ([]);
  for (const [, minus, key, quoted, plain] of text.matchAll(/(-?)(?:([a-zA-Z]+):)?(?:"([^"]*)"?|(\S+))/g)) {
    const value = low(quoted ?? plain ?? '');
    if (!key) {
      if (value.endsWith(':') && low(value.slice(0, -1)) in terms) problems.push(`${value} wants a value`);
      else if (value) all.push(not(minus, ({ lease: l }) => low(`${l.name} ${holders(l).join(' ')} ${kindText(l)}`).includes(value)));
      continue;
    }
    const term = terms[low(key)];
    if (!term) {
      // A name may have a colon in it.
      const near = termNames.find((t) => close(t, low(key)));
      if (near) problems.push(`${key}: is no term: did you mean ${near}:?`);
      else if (/^[a-z]+$/i.test(key)) problems.push(`${key}: is no term: ${termNames.map((t) => `${t}:`).join(' ')}. To find the text, write "${key}:${value}"`);
      continue;
    }
    const found = term(value);
    if (typeof found === 'string') problems.push(found);
    else all.push(not(minus, found));
    if (low(key) === 'state' && !minus && typeof found !== 'string') wanted.push(...(called[value] || [value]));
  }
  return { fits: (s) => all.every((f) => f(s)), problem: problems.join('. '), states: wanted, empty: all.length === 0 };
}

/**
 * @param {string} minus
 * @param {(s: Subject) => boolean} f
 * @returns {(s: Subject) => boolean}
 */
function not(minus, f) {
  return minus ? (s) => !f(s) : f;
}

/**
 * close reports whether two words are alike: one letter more, less or other.
 * @param {string} a
 * @param {string} b
 */
function close(a, b) {
  if (a.startsWith(b) || b.startsWith(a)) return true;
  if (Math.abs(a.length - b.length) > 1) return false;
  let i = 0, j = 0, off = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) { i++; j++; continue; }
    if (++off > 1) return false;
    if (a.length >= b.length) i++;
    if (b.length >= a.length) j++;
  }
  return off + (a.length - i) + (b.length - j) <= 1;
}

/**
 * withTerm puts a term into a query, in the place of others of its key; an empty value takes them out.
 * @param {string} text
 * @param {string} key
 * @param {string} value
 */
export function withTerm(text, key, value) {
  const rest = text.replace(new RegExp(`(^|\\s)-?${key}:("[^"]*"?|\\S*)`, 'gi'), ' ').trim().replace(/\s+/g, ' ');
  return value ? `${key}:${quoteTerm(value)} ${rest}`.trim() : rest;
}

/** @param {string} value */
export function quoteTerm(value) {
  return /[\s"]/.test(value) ? `"${value.replaceAll('"', '')}"` : value;
}
