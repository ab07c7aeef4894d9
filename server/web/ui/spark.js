// @ts-check
// Small plots of what the server measures, from its /metrics: how long the store takes, and how much of the TTL is left when renewals come.
import { h, s, setText } from './dom.js';

const every = 5_000, most = 180; // points: a quarter of an hour

/**
 * @typedef {Map<number, number>} Buckets  counts, cumulative, by upper bounds
 */

/**
 * read takes histograms out of the text of /metrics; those of one name are added up.
 * @param {string} text
 * @param {string} name
 * @returns {Buckets}
 */
export function read(text, name) {
  const all = new Map();
  for (const m of text.matchAll(new RegExp(`^${name}_bucket\\{[^}]*le="([^"]+)"[^}]*\\} (\\S+)$`, 'gm'))) {
    const le = m[1] === '+Inf' ? Infinity : Number(m[1]);
    all.set(le, (all.get(le) || 0) + Number(m[2]));
  }
  return all;
}

/**
 * quantile estimates one of what came between two readings; NaN if nothing did.
 * @param {Buckets} before
 * @param {Buckets} after
 * @param {number} q
 */
export function quantile(before, after, q) {
  const bounds = [...after.keys()].sort((a, b) => a - b);
  const counts = bounds.map((le) => (after.get(le) || 0) - (before.get(le) || 0));
  const total = counts[counts.length - 1] || 0;
  if (total <= 0) return NaN;
  const rank = q * total, i = counts.findIndex((n) => n >= rank && n > 0);
  const from = i > 0 ? bounds[i - 1] : 0, under = i > 0 ? counts[i - 1] : 0, to = bounds[i];
  if (!Number.isFinite(to)) return from;
  return from + (to - from) * Math.min(Math.max((rank - under) / (counts[i] - under), 0), 1);
}

/** Pulse asks for the measures while somebody looks. What it knew stays when the view is left. */
export class Pulse {
  /** @param {(path: string) => Promise<Response>} ask */
  constructor(ask) {
    this.ask = ask;
    this.at = -Infinity;
    this.busy = false;
    this.why = ''; // there is nothing
    /** @type {{latency: Buckets, margin: Buckets}|null} */
    this.last = null;
    /** @type {{at: number, latency: number, margin: number}[]} */
    this.points = [];
    this.begin = { latency: NaN, margin: NaN }; // since the server began, until there are points
  }

  /**
   * @param {number} now
   * @param {boolean|null} may  null if that isn't known yet
   */
  render(now, may) {
    if (may === null || this.busy || now - this.at < every) return;
    if (!may) {
      this.why = 'The policy does not let you read the measures (metrics).';
      return;
    }
    this.busy = true;
    this.at = now;
    void this.ask('/metrics').then((r) => r.text()).then((text) => {
      const next = { latency: read(text, 'leasehold_store_duration_seconds'), margin: read(text, 'leasehold_renewal_margin_ratio') };
      if (!this.last) this.begin = { latency: quantile(new Map(), next.latency, 0.99), margin: quantile(new Map(), next.margin, 0.05) };
      else {
        this.points.push({ at: now, latency: quantile(this.last.latency, next.latency, 0.99), margin: quantile(this.last.margin, next.margin, 0.05) });
        if (this.points.length > most) this.points.shift();
      }
      this.last = next;
      this.why = '';
    }, () => { this.why = 'The measures can’t be read now.'; }).finally(() => { this.busy = false; });
  }
}

const width = 260, height = 40;

/** Spark is one plot, with what it says now in words. */
export class Spark {
  /**
   * @param {string} title
   * @param {string} about
   * @param {(v: number) => string} words
   * @param {{most?: number, mark?: number}} o  the largest value; one from which on (or below which) it is bad
   */
  constructor(title, about, words, o = {}) {
    this.words = words;
    this.o = o;
    this.value = h('b');
    this.note = h('small');
    this.line = s('path', { class: 'line' });
    this.area = s('path', { class: 'area' });
    this.mark = s('line', { class: 'mark', x1: 0, x2: width });
    this.svg = s('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, this.area, this.mark, this.line);
    this.el = h('div.spark', {}, h('div', {}, h('h3', { title: about }, title), this.value, this.note), this.svg);
    this.of = '';
  }

  /**
   * @param {number[]} values
   * @param {string} why  there is nothing
   * @param {number} begin  the value since the server began
   */
  show(values, why, begin) {
    const known = values.filter((v) => !Number.isNaN(v)), last = known[known.length - 1] ?? (Number.isNaN(begin) ? undefined : begin);
    const of = `${values.length} ${last} ${why}`;
    if (of === this.of) return;
    this.of = of;
    this.svg.toggleAttribute('hidden', known.length < 2);
    setText(this.value, last === undefined ? '–' : this.words(last));
    this.el.dataset.level = last !== undefined && last < (this.o.mark ?? -1) ? 'low' : '';
    setText(this.note, why || (known.length < 2 ? (last === undefined ? 'Nothing has been measured yet.' : 'Since the server began; a line follows.') : `${this.words(Math.min(...known))} to ${this.words(Math.max(...known))} in ${Math.max(Math.round(values.length * every / 60_000), 1)} min`));
    if (known.length < 2) return;
    const top = this.o.most ?? (Math.max(...known) * 1.15 || 1), n = Math.max(values.length - 1, 1);
    const y = (/** @type {number} */ v) => (height - 2 - (height - 4) * Math.min(v / top, 1)).toFixed(1);
    let path = '', pen = 'M', from = '';
    values.forEach((v, i) => {
      if (Number.isNaN(v)) return; // no traffic: the line joins what is on both sides
      const x = (width * i / n).toFixed(1);
      if (!from) from = x;
      path += `${pen}${x} ${y(v)}`;
      pen = 'L';
    });
    this.line.setAttribute('d', path);
    this.area.setAttribute('d', `${path}V${height}H${from}Z`);
    const { mark } = this.o;
    this.mark.toggleAttribute('hidden', mark === undefined);
    if (mark !== undefined) for (const end of ['y1', 'y2']) this.mark.setAttribute(end, y(mark));
  }
}
