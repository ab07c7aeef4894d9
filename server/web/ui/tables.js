// @ts-check
// What the detail lists: terms, who waits, and who stands for election.
import { duration, h, moment } from './dom.js';
import { outcome } from './model.js';
import { digits } from './token.js';

/**
 * @typedef {{holder: string, waited: number, left: number, info?: Record<string, string>}} Waiter
 */

/**
 * table is rows under a head. A cell that is an array is what it says, and softly more.
 * @param {string[]} head
 * @param {(string|[string, string]|HTMLElement)[][]} rows
 */
function table(head, rows) {
  const cell = (/** @type {string|[string, string]|HTMLElement} */ c) => (typeof c === 'string' || c instanceof HTMLElement ? h('td', {}, c) : h('td', {}, c[0], ' ', h('small', {}, c[1])));
  return h('table', {}, h('thead', {}, h('tr', {}, ...head.map((text) => h('th', { scope: 'col' }, text)))),
    h('tbody', {}, ...rows.map((cells) => h('tr', {}, ...cells.map(cell)))));
}

/**
 * scrolled lets a table be wider than the screen.
 * @param {string} label
 * @param {HTMLElement} el
 */
function scrolled(label, el) {
  return h('div.scroll', { tabindex: '0', role: 'region', 'aria-label': label }, el);
}

/**
 * @param {import('./lanes.js').Term[]} all
 * @param {number} now the server's time of day
 * @param {string} present  what is said of a term that has not ended
 */
export function terms(all, now, present) {
  return scrolled('Terms', table(['Holder', 'Token', 'From', 'For', 'Ended'], all.map((t) => {
    const from = Date.parse(t.from);
    return [t.holder, digits(t.token), [`${duration(now - from)} ago`, moment(t.from)],
      duration((t.until ? Date.parse(t.until) : now) - from), t.until ? t.ended || 'ended' : present];
  })));
}

/**
 * @param {import('./model.js').Turn[]} all
 * @param {number} now the server's time of day
 */
export function turns(all, now) {
  return scrolled('Turns', table(['Turn', 'Outcome', 'Begun', 'For', 'Token', 'Holder'], all.map((t) => {
    const begun = Date.parse(t.begun), end = t.ended ? Date.parse(t.ended) : t.state === 'running' ? now : NaN;
    return [[t.at, t.zone], outcome(t), [`${duration(now - begun)} ago`, moment(t.begun)], Number.isNaN(end) ? '–' : duration(end - begun), digits(t.token), t.holder];
  })));
}

/** @param {Waiter[]} all */
export function queue(all) {
  if (all.length === 0) return h('p.empty', {}, 'Nobody.');
  return h('ol', {}, ...all.map((w) => {
    const info = Object.entries(w.info || {}).map(([key, value]) => `${key} ${value}`).join(', ');
    return h('li', {}, h('b', {}, w.holder), ` has waited ${duration(w.waited * 1000)}, and gives up in ${duration(w.left * 1000)}`, info ? h('small', {}, ` ${info}`) : null);
  }));
}

/**
 * @param {import('./model.js').Candidate[]} all
 * @param {string} holder who leads
 * @param {number} now the server's time of day
 */
export function candidates(all, holder, now) {
  return scrolled('Candidates', table(['Candidate', 'Role', 'Priority', 'Zone', 'Since', 'Holder’s id'], all.map((c) => [c.name,
    c.holder === holder ? 'leads' : c.ineligible ? 'not eligible' : 'candidate', String(c.priority || 0), c.zone || '–',
    [`${duration(now - Date.parse(c.since))} ago`, moment(c.since)], c.holder])));
}
