// @ts-check
// How the timeline puts spans into lanes: by prefix, holder, session, pool, election or zone.
import { detailPath, namesPath } from './names.js';
import { quoteTerm } from './query.js';
import { base, held, Lane } from './spans.js';
import { short } from './token.js';

/**
 * @typedef {import('./spans.js').Span} Span
 *
 * @typedef {object} Group  a way to put spans into lanes
 * @property {string} id
 * @property {string} text
 * @property {(s: Span, model: import('./model.js').Model) => string|null} of  the group that a span belongs to; null for none of this picture
 * @property {boolean} [holders]  a lane for each holder, not for each name
 * @property {boolean} [states]   it shows what isn't a term, too
 * @property {(s: Span) => string} [label]  of a term; by default the other one of holder and name
 * @property {(group: string) => string} [title]
 * @property {(group: string) => string} [href]
 * @property {(name: string) => string} [lane]  how the lane of a name is called within its group
 * @property {string} [none]   what there is to say when there is nothing
 */

/** @param {string} name */
const prefix = (name) => name.slice(0, name.lastIndexOf('/') + 1);
const value = /^identity\/([^/]*)\/(.*)$/;

/** @param {string} text */
function plain(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a name that no pool gave
  }
}

/** @type {Group[]} */
export const groups = [
  { id: 'prefix', text: 'prefix', states: true, of: (s) => prefix(s.name), lane: (name) => name.slice(prefix(name).length) || name },
  { id: 'holder', text: 'holder', holders: true, of: () => '' },
  {
    id: 'session', text: 'session', of: (s, model) => (s.session || now(s, model)?.session || null), title: (id) => id.replace(/^\.session\//, ''), href: (id) => namesPath(`session:${quoteTerm(id)}`),
    none: 'No session kept a name in this time, as far as the journal knows.',
  },
  {
    id: 'pool', text: 'pool', states: true, of: (s) => (value.exec(s.name) ? plain(s.name.replace(value, '$1')) : null), href: (pool) => `#pools/${encodeURIComponent(pool)}`,
    lane: (name) => plain(name.replace(value, '$2')), none: 'No value of a pool was taken in this time.',
  },
  {
    id: 'election', text: 'election', holders: true, states: true, of: (s, model) => (s.kind === 'paused' || (s.name_kind || model.rows.get(s.name)?.lease.kind) === 'election' ? s.name : null), href: detailPath,
    label: (s) => short(s.token), none: 'There was no election in this time.',
  },
  { id: 'zone', text: 'zone', holders: true, of: (s) => s.zone || null, none: 'No holder said in which zone it was: candidates say so, and holders by “zone” in their info.' },
];

/**
 * now is the present lease of a span that lasts: what the journal of an earlier version doesn't say.
 * @param {Span} s
 * @param {import('./model.js').Model} model
 */
function now(s, model) {
  const lease = s.until ? undefined : model.rows.get(s.name)?.lease;
  return lease && lease.token === s.token ? lease : undefined;
}

/**
 * laneOf puts spans into lanes, in the order of their groups and names.
 * @param {Span[]} spans
 * @param {Group} by
 * @param {import('./model.js').Model} model
 */
export function laneOf(spans, by, model) {
  /** @type {Map<string, Lane>} */
  const lanes = new Map();
  /** @type {Map<string, Span[]>} */
  const pauses = new Map(); // of elections: nobody leads then
  const label = by.label || (by.holders ? (/** @type {Span} */ s) => s.name : (/** @type {Span} */ s) => base(s.holder || ''));
  for (const s of spans) {
    const group = by.of(s, model);
    if (group === null || !(by.states || held.has(s.kind))) continue;
    if (by.holders && s.kind === 'paused') pauses.set(group, [...pauses.get(group) || [], s]);
    if (by.holders && (s.kind === 'paused' || !s.holder)) continue;
    const name = by.holders ? base(s.holder || '') : s.name, key = JSON.stringify([group, name]);
    let lane = lanes.get(key);
    if (!lane) lanes.set(key, lane = new Lane(name, by.lane ? by.lane(name) : name, group, label, Boolean(by.holders) && by.id !== 'election'));
    lane.spans.push(s);
  }
  for (const [group, all] of pauses) {
    const of = [...lanes.values()].filter((lane) => lane.group === group);
    if (of.length === 0) {
      const lane = new Lane('', 'nobody', group, label, false);
      lanes.set(JSON.stringify([group, '']), lane);
      of.push(lane);
    }
    for (const lane of of) lane.spans.push(...all);
  }
  const all = [...lanes.values()];
  for (const lane of all) lane.spans.sort((a, b) => Date.parse(a.from) - Date.parse(b.from));
  const rank = (/** @type {string} */ a, /** @type {string} */ b) => Number(a > b) - Number(a < b);
  return all.sort((a, b) => rank(a.group, b.group) || rank(a.name, b.name));
}
