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
export const spans = [{ text: '1 min', ms: 60_000 }, { text: '10 min', ms: 600_000 }, { text: '1 h', ms: 3_600_000 }, { text: '24 h', ms: 86_400_000 }];

const lane = 46, bar = 16, axis = 24, top = 4, edge = 8;

/**
 * times returns the terms' spans, newest first as the terms are, with what nobody held and what two held.
 * @param {Term[]} terms
 * @param {number} now  the server's time of day
 * @param {number} end  of the term that has not ended yet: now, or when it expired
 */
export function times(terms, now, end) {
  const all = terms.map((term) => {
    const from = Date.parse(term.from), to = term.until ? Date.parse(term.until) : end;
    return { term, from, to: Math.max(from, to) }; // clocks may have been set back
  });
  const gaps = /** @type {Span[]} */ ([]), overlaps = /** @type {Span[]} */ ([]);
  const inOrder = all.toSorted((a, b) => a.from - b.from);
  let until = inOrder.length > 0 ? inOrder[0].from : now;
  for (const t of inOrder) {
    if (t.from > until) gaps.push({ from: until, to: t.from });
    until = Math.max(until, t.to);
  }
  if (until < now) gaps.push({ from: until, to: now });
  all.forEach((a, i) => {
    for (const b of all.slice(i + 1)) {
      const from = Math.max(a.from, b.from), to = Math.min(a.to, b.to);
      if (from < to && a.term.holder !== b.term.holder) overlaps.push({ from, to });
    }
  });
  return { all, gaps, overlaps, first: inOrder.length > 0 ? inOrder[0].from : now };
}

/**
 * fitting returns the shortest span that has all of the terms.
 * @param {Term[]} terms
 * @param {number} now
 */
export function fitting(terms, now) {
  const { first } = times(terms, now, now);
  return (spans.find(({ ms }) => now - first <= ms) || spans[spans.length - 1]).ms;
}

/**
 * grouped returns in which lane each term is: that of its holder, and of holders that call themselves the same and never held it at
 * the same time, as those of one program that is started again and again.
 * @param {{term: Term, from: number, to: number}[]} all
 * @returns {Map<Term, string>}
 */
function grouped(all) {
  const lanesOf = new Map();
  for (const t of all) {
    const called = t.term.holder.slice(0, Math.max(t.term.holder.lastIndexOf('/'), 0)) || t.term.holder;
    const same = all.filter((o) => o.term.holder !== t.term.holder && o.term.holder.startsWith(`${called}/`) && !o.term.holder.slice(called.length + 1).includes('/'));
    const alone = same.length === 0 || same.some((o) => Math.max(o.from, t.from) < Math.min(o.to, t.to));
    lanesOf.set(t.term, alone ? t.term.holder : called);
  }
  return lanesOf;
}

/**
 * lanes draws the picture.
 * @param {Term[]} terms newest first
 * @param {number} now the server's time of day
 * @param {number} ms how much of the past to show
 * @param {number} width
 * @param {number} [end] when the last term expired, unless it lasts
 */
export function lanes(terms, now, ms, width, end = now) {
  const { all: ever, gaps: gapsEver, overlaps: overlapsEver, first } = times(terms, now, end);
  const inView = (/** @type {Span} */ { to }) => to > now - ms;
  const all = ever.filter(inView), gaps = gapsEver.filter(inView), overlaps = overlapsEver.filter(inView);
  const laneOf = grouped(all), named = (/** @type {{term: Term}} */ t) => laneOf.get(t.term) || '';
  const holders = [...new Set(all.map(named))].reverse();
  const height = top + Math.max(holders.length, 1) * lane + axis;
  const x = (/** @type {number} */ t) => edge + Math.min(Math.max((t - (now - ms)) / ms, 0), 1) * (width - 2 * edge);
  const band = (/** @type {Span} */ { from, to }, /** @type {string} */ cls, /** @type {string} */ title) => s('rect', {
    class: cls, x: x(from), y: top, width: Math.max(x(to) - x(from), 1), height: height - axis - top,
  }, s('title', {}, title));
  const svg = s('svg', {
    role: 'img', viewBox: `0 0 ${width} ${height}`, width, height,
    'aria-label': `Who held the name in the last ${duration(ms)}: ${all.length} terms of ${holders.length} holders, ${gaps.length} gaps, ${overlaps.length} overlaps. The table below says the same.`,
  }, hatching(),
  first > now - ms ? band({ from: now - ms, to: first }, 'before', 'before the first term that is kept') : null,
  ...gaps.map((g) => band(g, 'gap', `nobody held it for ${duration(g.to - g.from)}`)));
  holders.forEach((holder, i) => {
    const y = top + i * lane;
    svg.append(s('line', { class: 'rule', x1: 0, x2: width, y1: y + lane, y2: y + lane }),
      s('text', { x: edge, y: y + 15, class: 'holder' }, cutTo(holder, Math.floor(width / 8))));
  });
  for (const t of all) {
    const others = all.filter((o) => o !== t && named(o) === named(t));
    const limit = Math.min(width - edge, ...others.filter((o) => o.from > t.from).map((o) => x(o.from)));
    const alone = !others.some((o) => o.from < t.from);
    svg.append(...block(t, end < now, x, top + holders.indexOf(named(t)) * lane + 21, limit, alone));
  }
  svg.append(...overlaps.map((o) => band(o, 'overlap', `two holders for ${duration(o.to - o.from)}`)));
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
 * @param {boolean} over the term that has not ended has expired
 * @param {(t: number) => number} x
 * @param {number} y
 * @param {number} limit where the next term of the lane begins
 * @param {boolean} alone nothing is in the lane before it
 */
function block({ term, from, to }, over, x, y, limit, alone) {
  const left = x(from), right = Math.max(x(to), left + 2);
  const reason = term.until ? term.ended || 'ended' : over ? 'not renewed' : 'holds it';
  const now = term.until || over ? '' : ' now';
  return [
    s('rect', { class: `term${now}`, x: left, y, width: right - left, height: bar, rx: 2 },
      s('title', {}, `${term.holder}, token ${term.token}, ${duration(to - from)}, ${reason}`)),
    s('line', { class: 'edge', x1: right, x2: right, y1: y - 2, y2: y + bar + 2 }),
    label(reason, left, right, y + 12, limit, alone, now) || '',
  ];
}

/**
 * label writes the reason of an edge where there is room: behind it, within the bar, before that, or cut off behind it.
 * @param {string} reason
 * @param {number} left
 * @param {number} right
 * @param {number} y
 * @param {number} limit
 * @param {boolean} alone
 * @param {string} now
 */
function label(reason, left, right, y, limit, alone, now) {
  const wants = reason.length * letter, room = limit - right - 8;
  if (room >= wants) return s('text', { class: 'reason', x: right + 5, y }, reason);
  if (right - left - 10 >= wants) return s('text', { class: `reason inside${now}`, x: right - 5, y, 'text-anchor': 'end' }, reason);
  if (alone && left - 5 >= wants) return s('text', { class: 'reason', x: left - 5, y, 'text-anchor': 'end' }, reason);
  return room >= 6 * letter ? s('text', { class: 'reason', x: right + 5, y }, cutTo(reason, Math.floor(room / letter))) : null;
}

/**
 * @param {number} ms
 * @param {number} width
 * @param {number} height
 */
function ticks(ms, width, height) {
  const n = width < 500 ? 2 : 4, y = height - axis;
  return Array.from({ length: n + 1 }, (_, i) => s('text', {
    class: 'tick', x: edge + (width - 2 * edge) * i / n, y: y + 17, 'text-anchor': i === 0 ? 'start' : i === n ? 'end' : 'middle',
  }, i === n ? 'now' : `${duration(ms * (n - i) / n)} ago`));
}

/**
 * @param {string} text
 * @param {number} most
 */
function cutTo(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
