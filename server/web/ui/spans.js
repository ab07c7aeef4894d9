// @ts-check
// What the server's journal says, and how it is put into lanes.
import { duration, moment } from './dom.js';
import { Problem } from './api.js';

/**
 * @typedef {object} Span  as the API has it
 * @property {string} name
 * @property {string} kind
 * @property {string} [holder]
 * @property {number} [token]
 * @property {string} from
 * @property {string} [until]
 * @property {string} [ended]
 * @property {string} [note]
 * @property {string} [name_kind]
 * @property {string} [session]
 * @property {string} [zone]
 *
 * @typedef {object} Piece  of a lane
 * @property {number} from
 * @property {number} to
 * @property {string} look   class names
 * @property {number} terms  how many; 0 for a state beside them
 * @property {string} label
 * @property {string} text
 * @property {string} id
 * @property {number} row    in the lane, from 0: a holder may have several names at a time
 */

const pages = 5; // that are read at most
const colours = 8;
const mostRows = 12; // of a lane
const narrow = 3; // pixels: terms that are narrower are drawn as one

/**
 * load reads what lasted between two times.
 * @param {typeof import('./api.js').ask} ask
 * @param {number} since
 * @param {number} until
 * @param {string} prefix
 */
export async function load(ask, since, until, prefix) {
  const q = new URLSearchParams({ since: new Date(since).toISOString(), until: new Date(until).toISOString(), prefix, limit: '2000' });
  const spans = /** @type {Span[]} */ ([]);
  let from = NaN, more = false;
  for (let i = 0; ; i++) {
    const page = await (await ask(`/v1/history?${q}`)).json();
    spans.push(...page.spans);
    from = Date.parse(page.from);
    if (!page.next) break;
    if (more = i + 1 === pages) break;
    q.set('after', page.next);
  }
  return { spans, from, more };
}

/** @param {unknown} err */
export function problem(err) {
  if (!(err instanceof Problem)) return 'The server can’t be reached: this is the last known state.';
  switch (err.code) {
    case 'no_journal': return 'This server keeps no journal: it knows the present only. Start it with: leasehold serve --journal FILE';
    case 'forbidden': return `${err.message}. Fill in the prefix that you may read.`;
  }
  return err.message;
}

/**
 * base is who a holder is, whatever process of it.
 * @param {string} holder
 */
export function base(holder) {
  const i = holder.indexOf('/');
  return i > 0 ? holder.slice(0, i) : holder;
}

/**
 * colour is that of a holder, the same on every page.
 * @param {string} holder
 */
export function colour(holder) {
  let sum = 2166136261;
  for (const c of base(holder)) sum = Math.imul(sum ^ /** @type {number} */ (c.codePointAt(0)), 16777619);
  return (sum >>> 0) % colours;
}

/** The kinds of spans in which somebody holds a name. */
export const held = new Set(['term', 'share']);

/** Lane is what is drawn in one line. */
export class Lane {
  /**
   * @param {string} name   of a name, or of a holder
   * @param {string} short
   * @param {string} group  that it is in; '' for none
   * @param {(s: Span) => string} label  of a term
   * @param {boolean} many  a holder's: several names at a time, one below the other
   */
  constructor(name, short, group, label, many) {
    this.name = name;
    this.short = short;
    this.group = group;
    this.label = label;
    this.many = many;
    /** @type {Span[]} */
    this.spans = [];
  }

  /**
   * pieces are what is to be drawn of a time, in order.
   * @param {number} since
   * @param {number} until
   * @param {number} now
   * @param {number} width in pixels, about
   * @returns {Piece[]}
   */
  pieces(since, until, now, width) {
    const least = (until - since) / width * narrow;
    const all = /** @type {Piece[]} */ ([]);
    const rows = /** @type {{name: string, last: Piece}[]} */ ([]); // of a holder's lane, what is the last in each
    let last = /** @type {Piece|undefined} */ (undefined), row = 0;
    for (const s of this.spans) {
      const from = Date.parse(s.from), to = Math.max(s.until ? Date.parse(s.until) : Math.min(now, until), from);
      if (to < since || from > until) continue;
      if (!held.has(s.kind)) {
        all.push({ from, to: Math.max(to, from + least / 2), look: `state ${s.kind.replace(' ', '-')}`, terms: 0, label: '', text: '', id: '', row: 0 });
        continue;
      }
      if (this.many) {
        row = rows.findIndex((r) => r.name === s.name || r.last.to <= from);
        if (row < 0) row = Math.min(rows.length, mostRows - 1);
        last = rows[row]?.name === s.name ? rows[row].last : undefined;
      }
      if (last && from < last.to && s.kind === 'term' && !this.many) all.push({ from, to: Math.min(to, last.to), look: 'state overlap', terms: 0, label: '', text: '', id: '', row });
      if (last && to - from < least && (last.terms > 1 || last.to - last.from < least) && from - last.to < least) { // one after the other, in no time
        last.to = Math.max(last.to, to);
        last.terms++;
        last.label = '';
        last.text = `${s.name}: ${last.terms} short terms, from ${moment(new Date(last.from).toISOString())} to ${moment(new Date(to).toISOString())}`;
        last.look = lost(s) || last.look.includes('lost') ? 'term many lost' : 'term many';
        continue;
      }
      last = { from, to: Math.max(to, from + least / 3), look: `term c${colour(s.holder || '')}${lost(s) ? ' lost' : ''}${s.until ? '' : ' lasts'}`, terms: 1,
        label: this.label(s), text: describe(s, to - from), id: `${s.name}\n${s.token}`, row };
      rows[row] = { name: s.name, last };
      all.push(last);
    }
    return all.sort((a, b) => Number(b.terms > 0) - Number(a.terms > 0) || a.from - b.from);
  }
}

/** @param {Span} s */
function lost(s) {
  return Boolean(s.until) && !/^(released|handed over|session ended)/.test(s.ended || 'released');
}

/**
 * @param {Span} s
 * @param {number} ms
 */
function describe(s, ms) {
  const end = s.until ? `to ${moment(s.until)}, ${s.ended || 'ended'}` : 'on, and holds it';
  return `${s.name}: ${s.holder}, token ${s.token}, for ${duration(ms)}, from ${moment(s.from)} ${end}`;
}

const steps = [1e3, 5e3, 15e3, 6e4, 3e5, 9e5, 36e5, 216e5, 864e5, 6048e5];

/**
 * windowOf returns the marks of a time, eight or fewer.
 * @param {number} since
 * @param {number} until
 */
export function windowOf(since, until) {
  const step = steps.find((ms) => (until - since) / ms <= 8) || steps[steps.length - 1];
  const marks = [];
  for (let at = Math.ceil(since / step) * step; at <= until; at += step) {
    const text = new Date(at).toISOString();
    marks.push({ left: (at - since) / (until - since) * 100, text: step >= 864e5 ? text.slice(5, 10) : step < 6e4 ? text.slice(11, 19) : text.slice(11, 16) });
  }
  return marks;
}
