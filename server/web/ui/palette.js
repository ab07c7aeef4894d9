// @ts-check
// The command palette: Ctrl-K goes to a view, a name or a holder by a few letters; "?" lists the keys.
import { byID, h } from './dom.js';
import { hostOf } from './model.js';
import { detailPath, namesPath } from './names.js';
import { quoteTerm } from './query.js';
import { hrefOf, views } from './views.js';

const most = 12;

/** @typedef {{text: string, more: string, href: string}} Entry */

/**
 * score says how well a text fits what was typed: the smaller the better; Infinity if it doesn't.
 * @param {string} text
 * @param {string} typed  in small letters
 */
function score(text, typed) {
  const at = text.toLowerCase().indexOf(typed);
  if (at >= 0) return at + text.length / 1000;
  let i = 0; // letters in their order
  for (const c of text.toLowerCase()) if (c === typed[i]) i++;
  return i === typed.length ? 1000 + text.length : Infinity;
}

/**
 * find returns what fits.
 * @param {import('./model.js').Model} model
 * @param {string} text
 * @returns {Entry[]}
 */
function find(model, text) {
  const typed = text.trim().toLowerCase();
  /** @type {{entry: Entry, n: number}[]} */
  const all = [];
  const add = (/** @type {Entry} */ entry, /** @type {number} */ rank) => {
    const n = score(entry.text, typed);
    if (n < Infinity) all.push({ entry, n: n + rank });
  };
  for (const v of views()) add({ text: v.title, more: 'view', href: hrefOf(v) }, 0);
  if (typed) {
    const hosts = new Set();
    for (const [name, { lease }] of model.rows) {
      add({ text: name, more: lease.holder ? `${lease.state}, ${lease.holder}` : lease.state, href: detailPath(name) }, 0.1);
      if (lease.holder) hosts.add(hostOf(lease.holder, lease.info));
    }
    for (const host of hosts) add({ text: host, more: 'what this host holds', href: namesPath(`host:${quoteTerm(host)}`) }, 0.05);
    if (/\w:\S/.test(typed)) all.push({ entry: { text: `Find ${text.trim()}`, more: 'names', href: namesPath(text.trim()) }, n: -1 });
  }
  return all.sort((a, b) => a.n - b.n).slice(0, most).map(({ entry }) => entry);
}

const dialog = () => /** @type {HTMLDialogElement} */ (byID('palette'));

/** @param {import('./model.js').Model} model */
export function openPalette(model) {
  const el = dialog();
  if (el.open) return;
  let entries = /** @type {Entry[]} */ ([]), at = 0;
  const list = h('ul', { id: 'palette-list', role: 'listbox', 'aria-label': 'What fits' });
  const show = () => {
    list.replaceChildren(...entries.map((e, i) => h('li', { id: `palette-${i}`, role: 'option', 'aria-selected': String(i === at), onclick: () => go(i) }, h('span', {}, e.text), h('small', {}, e.more))));
    if (entries.length > 0) input.setAttribute('aria-activedescendant', `palette-${at}`);
    else input.removeAttribute('aria-activedescendant');
    input.setAttribute('aria-expanded', String(entries.length > 0));
    none.hidden = entries.length > 0;
  };
  const go = (/** @type {number} */ i) => {
    if (!entries[i]) return;
    el.close();
    location.hash = entries[i].href;
  };
  const input = /** @type {HTMLInputElement} */ (h('input', { type: 'text', role: 'combobox', 'aria-controls': 'palette-list', 'aria-expanded': 'false', 'aria-autocomplete': 'list', 'aria-label': 'Go to a view, a name or a host', placeholder: 'Go to a view, a name, a host; or state:jeopardy', autocomplete: 'off', spellcheck: 'false',
    oninput: () => {
      entries = find(model, input.value);
      at = 0;
      show();
    },
    onkeydown: (/** @type {KeyboardEvent} */ e) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
      if (step) {
        at = (at + step + entries.length) % Math.max(entries.length, 1);
        show();
      } else if (e.key === 'Enter') go(at);
      else return;
      e.preventDefault();
    },
  }));
  const none = h('p.soft', { hidden: true }, 'Nothing fits.');
  el.className = '';
  el.setAttribute('aria-label', 'Go to');
  el.replaceChildren(input, list, none);
  entries = find(model, '');
  show();
  el.showModal();
  input.focus();
}

const keys = [
  ['Ctrl K', 'go to a view, a name or a host'], ['?', 'these keys'], ['/', 'the search'], ['g and a letter', 'a view: o overview, n names, h holders, s sessions, e elections, l locks, p pools, t timeline'],
  ['↑ ↓ Home End', 'from row to row'], ['Enter', 'open what is in the row'], ['Escape', 'back to where the name was opened from'],
  ['← → in the timeline', 'from term to term; with Shift through time; + and − zoom'],
];

/** openKeys lists the keys. */
export function openKeys() {
  const el = dialog();
  if (el.open) return;
  el.className = 'keys';
  el.setAttribute('aria-label', 'Keys');
  el.replaceChildren(h('h2', {}, 'Keys'), h('dl', {}, ...keys.flatMap(([key, what]) => [h('dt', {}, ...key.split(/ (?=K$)/).flatMap((k, i) => [i > 0 ? ' ' : '', h('kbd', {}, k)])), h('dd', {}, what)])),
    h('div.buttons', {}, h('button', { type: 'button', onclick: () => el.close() }, 'Close')));
  el.showModal();
}

/** The letters behind g. @type {Record<string, string>} */
export const letters = { o: 'overview', n: 'names', h: 'holders', s: 'sessions', e: 'elections', l: 'locks', p: 'pools', t: 'timeline', d: 'pair', m: 'shards' };
