// @ts-check
// The lane picture: who held a name when. One lane a holder, what nobody held hatched, overlaps red.
import { duration, s } from './dom.js';

/**
 * @typedef {object} Term
 * @property {string} holder
 * @property {number} token
 * @property {string} from
 * @property {string} [until]
 * @property {string} [ended]
 *
 * @typedef {object} Span  of time, in ms
 * @property {number} from
 * @property {number} to
 */

/** What the picture may span. */
export const spans = [{ text: '10 min', ms: 600_000 }, { text: '1 h', ms: 3_600_000 }, { text: '24 h', ms: 86_400_000 }];

const lane = 46, bar = 16, axis = 22, top = 4;

/**
 * times returns the terms' spans, newest first as the terms are, with what nobody held and what two held.
 * @param {Term[]} terms
 * @param {number} now the server's time of day
 */
export function times(terms, now) {
  const all = terms.map((t) => ({ term: t, from: Date.parse(t.from), to: t.until ? Date.parse(t.until) : now }));
  /** @type {Span[]} */
  const gaps = [], overlaps = [];
  for (let i = 0; i + 1 < all.length; i++) {
    const newer = all[i], older = all[i + 1];
    if (older.to < newer.from) gaps.push({ from: older.to, to: newer.from });
    if (older.to > newer.from) overlaps.push({ from: newer.from, to: Math.min(older.to, newer.to) });
  }
  if (all.length > 0 && all[0].to < now) gaps.unshift({ from: all[0].to, to: now });
  return { all, gaps, overlaps, first: all.length > 0 ? all[all.length - 1].from : now };
}

/**
 * fitting returns the shortest span that has all of the terms.
 * @param {Term[]} terms
 * @param {number} now
 */
export function fitting(terms, now) {
  const { first } = times(terms, now);
  return (spans.find(({ ms }) => now - first <= ms) || spans[spans.length - 1]).ms;
}

/**
 * lanes draws the picture.
 * @param {Term[]} terms newest first
 * @param {number} now the server's time of day
 * @param {number} ms how much of the past to show
 * @param {number} width
 */
export function lanes(terms, now, ms, width) {
  const { all, gaps, overlaps, first } = times(terms, now);
  const holders = [...new Set(terms.map((t) => t.holder))].reverse();
  const height = top + Math.max(holders.length, 1) * lane + axis;
  const x = (/** @type {number} */ t) => Math.min(Math.max((t - (now - ms)) / ms, 0), 1) * width;
  const band = (/** @type {Span} */ { from, to }, /** @type {string} */ cls, /** @type {string} */ title) => (to <= now - ms ? null
    : s('rect', { class: cls, x: x(from), y: top, width: Math.max(x(to) - x(from), 1), height: height - axis - top }, s('title', {}, title)));
  const svg = s('svg', {
    role: 'img', viewBox: `0 0 ${width} ${height}`, width, height,
    'aria-label': `Who held the name in the last ${duration(ms)}: ${terms.length} terms of ${holders.length} holders, ${gaps.length} gaps, ${overlaps.length} overlaps. The table below says the same.`,
  }, hatching(),
  first > now - ms ? band({ from: now - ms, to: first }, 'before', 'before the first term that is kept') : null,
  ...gaps.map((g) => band(g, 'gap', `nobody held it for ${duration(g.to - g.from)}`)));
  holders.forEach((holder, i) => {
    const y = top + i * lane;
    svg.append(s('line', { class: 'rule', x1: 0, x2: width, y1: y + lane, y2: y + lane }),
      s('text', { x: 4, y: y + 15, class: 'holder' }, cutTo(holder, Math.floor(width / 8))));
  });
  for (const t of all) {
    if (t.to <= now - ms) continue;
    const others = all.filter((o) => o !== t && o.term.holder === t.term.holder);
    const limit = Math.min(width, ...others.filter((o) => o.from > t.from).map((o) => x(o.from)));
    const alone = !others.some((o) => o.from < t.from);
    svg.append(...block(t, x, top + holders.indexOf(t.term.holder) * lane + 21, limit, alone));
  }
  for (const o of overlaps) svg.append(band(o, 'overlap', `two holders for ${duration(o.to - o.from)}`) || '');
  svg.append(...ticks(ms, width, height));
  return svg;
}

function hatching() {
  return s('defs', {}, s('pattern', { id: 'hatch', width: 7, height: 7, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    s('line', { class: 'hatch', x1: 0, y1: 0, x2: 0, y2: 7 })));
}

const letter = 6.6; // px, on average

/**
 * @param {{term: Term, from: number, to: number}} t
 * @param {(t: number) => number} x
 * @param {number} y
 * @param {number} limit where the next term of the lane begins
 * @param {boolean} alone nothing is in the lane before it
 */
function block({ term, from, to }, x, y, limit, alone) {
  const left = x(from), right = Math.max(x(to), left + 2);
  const reason = term.until ? term.ended || 'ended' : 'holds it';
  const room = Math.floor((limit - right - 8) / letter);
  return [
    s('rect', { class: term.until ? 'term' : 'term now', x: left, y, width: right - left, height: bar, rx: 2 },
      s('title', {}, `${term.holder}, token ${term.token}, ${duration(to - from)}, ${reason}`)),
    s('line', { class: 'edge', x1: right, x2: right, y1: y - 2, y2: y + bar + 2 }),
    room >= Math.min(reason.length, 6) ? s('text', { class: 'reason', x: right + 5, y: y + 12 }, cutTo(reason, room))
      : s('text', { class: 'reason', x: Math.max(left - 5, 0), y: y + 12, 'text-anchor': 'end' }, alone && left > (reason.length + 1) * letter ? reason : ''),
  ];
}

/**
 * @param {number} ms
 * @param {number} width
 * @param {number} height
 */
function ticks(ms, width, height) {
  const n = width < 500 ? 2 : 4, y = height - axis;
  return Array.from({ length: n + 1 }, (_, i) => s('text', {
    class: 'tick', x: width * i / n, y: y + 16, 'text-anchor': i === 0 ? 'start' : i === n ? 'end' : 'middle',
  }, i === n ? 'now' : `${duration(ms * (n - i) / n)} ago`));
}

/**
 * @param {string} text
 * @param {number} most
 */
function cutTo(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
