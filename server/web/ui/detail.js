// @ts-check
// One name: who holds it, who did, who waits, what is written down, and what to do about it.
import { ask, leasePath, Problem } from './api.js';
import { badge } from './badge.js';
import { openBreak } from './break.js';
import { byID, duration, h, quote, setText } from './dom.js';
import { Expiry } from './expiry.js';
import { fitting, lanes, spans } from './lanes.js';
import { pauseText, row } from './model.js';

const reread = 3_000; // for what the stream doesn't tell

/**
 * @typedef {object} Found  what the server said about the name
 * @property {import('./model.js').Row} row
 * @property {import('./lanes.js').Term[]} terms
 * @property {{holder: string, waited: number, left: number}[]} waiters
 * @property {number} wall the server's time of day when performance.now() was 0
 */

/** Detail shows one name at a time. */
export class Detail {
  /**
   * @param {import('./model.js').Model} model
   * @param {(err: Problem) => void} refused
   */
  constructor(model, refused) {
    this.model = model;
    this.refused = refused;
    this.root = byID('detail');
    this.name = '';
    this.span = 0; // that was chosen; 0 for the one that fits
    this.readAt = this.triedAt = -Infinity;
    this.reading = false;
    this.seen = ''; // the row that was read for
    /** @type {Found|null} */
    this.found = null;
    this.parts = this.frame('');
    new ResizeObserver(() => this.draw()).observe(this.root);
  }

  /** @param {string} name */
  open(name) {
    this.name = name;
    this.span = 0;
    this.found = null;
    this.readAt = this.triedAt = -Infinity;
    this.parts = this.frame(name);
    this.root.replaceChildren(...this.parts.all);
    this.parts.title.focus();
    this.render();
  }

  /** close returns the name that was shown. */
  close() {
    const { name } = this;
    this.name = '';
    return name;
  }

  /** @param {string} name */
  frame(name) {
    const title = h('h2', { id: 'title', tabindex: '-1' }, name);
    const state = h('span.badge'), facts = h('dl.facts'), picture = h('div.picture'), terms = h('div.scroll', { tabindex: '0', role: 'region', 'aria-label': 'Terms' });
    const waiters = h('div'), record = h('code'), problem = h('p.problem', { role: 'alert', hidden: true });
    const expiry = new Expiry();
    const breaker = h('button.danger', { type: 'button', hidden: true, onclick: () => this.breakIt() }, 'Break the hold…');
    const choice = h('div.spans', { role: 'group', 'aria-label': 'How much of the past' }, ...spans.map(({ text, ms }) => h('button', {
      type: 'button', 'data-ms': ms, onclick: () => { this.span = ms; this.draw(); },
    }, text)));
    const commands = [`leasehold show ${quote(name)} --store ${location.origin}`, `leasehold history ${quote(name)} --store ${location.origin}`,
      `curl ${location.origin}${leasePath(name)}`];
    const all = [
      h('p.back', {}, h('a', { href: '#/' }, '← Board')),
      h('div.heading', {}, title, state, expiry.el, breaker), problem, facts,
      h('h3', {}, 'Who held it'), choice, picture,
      h('p.hint', {}, 'Hatched: nobody held it. Red: two holders at once, by the clocks of those who wrote it down. The last 8 terms are kept.'), terms,
      h('h3', {}, 'Who waits at this server'), waiters,
      h('h3', {}, 'The same by command'), ...commands.map(command),
      h('h3', {}, 'Record'), h('pre', { tabindex: '0', 'aria-label': 'Record, as JSON' }, record),
    ];
    return { all, title, state, facts, picture, terms, waiters, record, problem, expiry, breaker, choice };
  }

  breakIt() {
    if (this.found) openBreak(this.found.row.lease, () => { this.triedAt = -Infinity; this.render(); });
  }

  /** render shows how it is now, and reads anew what has changed. */
  render() {
    if (!this.name) return;
    const now = performance.now(), live = this.model.rows.get(this.name);
    const key = live ? `${live.lease.token} ${live.lease.state} ${live.lease.waiters}` : '';
    if (!this.reading && (key !== this.seen || now - this.triedAt > reread)) {
      this.seen = key;
      void this.read();
    }
    if (!this.found) return;
    const stale = this.model.staleFor(now) > 0 || now - this.readAt > 10_000;
    const shown = live || this.found.row;
    badge(this.parts.state, this.model.judge(shown, stale), stale ? `was ${shown.lease.state}` : '');
    this.parts.expiry.show(shown, now, stale);
    this.facts(shown.lease, now, stale);
  }

  async read() {
    this.reading = true;
    this.triedAt = performance.now();
    const { name } = this;
    try {
      const [lease, history, waiters] = await Promise.all([undefined, 'history', 'waiters'].map((what) => ask(leasePath(name, what))));
      const at = performance.now(), body = await lease.json();
      /** @type {Found} */
      const found = {
        row: row(body, at), terms: (await history.json()).terms, waiters: (await waiters.json()).waiters,
        wall: Date.parse(lease.headers.get('Date') || '') - at,
      };
      if (name !== this.name) return;
      this.found = found;
      this.readAt = at;
      setText(this.parts.record, JSON.stringify(body, null, 2));
      this.problem('');
      this.draw();
      this.render();
    } catch (err) {
      if (name !== this.name) return;
      if (err instanceof Problem && err.status === 401) this.refused(err);
      this.problem(err instanceof Problem ? err.message : 'The server can\'t be reached.');
    } finally {
      this.reading = false;
    }
  }

  /** @param {string} text */
  problem(text) {
    this.parts.problem.hidden = text === '';
    setText(this.parts.problem, text);
  }

  /**
   * @param {import('./model.js').Lease} l
   * @param {number} now
   * @param {boolean} stale
   */
  facts(l, now, stale) {
    const held = stale ? NaN : this.model.heldFor(l, now);
    /** @type {[string, string][]} */
    const all = [['Holder', l.holder || 'nobody'], ['Held for', Number.isNaN(held) ? '–' : duration(held)], ['Token', String(l.token || '–')],
      ['TTL', l.ttl ? duration(l.ttl * 1000) : '–']];
    if (l.session) all.push(['Session', l.session]);
    if (l.paused) all.push(['Paused', pauseText(l.paused)]);
    if (l.note) all.push(['Note', l.note]);
    for (const [key, value] of Object.entries(l.info || {})) all.push([key, value]);
    const { facts } = this.parts;
    if (facts.children.length !== all.length) facts.replaceChildren(...all.map(() => h('div', {}, h('dt'), h('dd'))));
    all.forEach(([key, value], i) => {
      const [dt, dd] = facts.children[i].children;
      setText(dt, key);
      setText(dd, value);
    });
    this.parts.breaker.hidden = !l.holder;
  }

  /** draw shows what was read. */
  draw() {
    if (!this.found || !this.name) return;
    const { terms, waiters, wall } = this.found, now = wall + performance.now();
    const ms = this.span || fitting(terms, now), width = Math.floor(this.parts.picture.clientWidth);
    if (width > 0) this.parts.picture.replaceChildren(lanes(terms, now, ms, width));
    for (const button of this.parts.choice.children) button.setAttribute('aria-pressed', String(button.getAttribute('data-ms') === String(ms)));
    this.parts.terms.replaceChildren(table(terms, now));
    this.parts.waiters.replaceChildren(waiters.length === 0 ? h('p', {}, 'Nobody.') : h('ol', {}, ...waiters.map((w) => h('li', {},
      h('b', {}, w.holder), `, for ${duration(w.waited * 1000)}, for another ${duration(w.left * 1000)} at the most`))));
  }
}

/**
 * @param {import('./lanes.js').Term[]} terms
 * @param {number} now
 */
function table(terms, now) {
  const ago = (/** @type {string} */ time) => `${duration(now - Date.parse(time))} ago`;
  return h('table', {}, h('thead', {}, h('tr', {}, ...['Holder', 'Token', 'From', 'Until', 'Ended'].map((text) => h('th', { scope: 'col' }, text)))),
    h('tbody', {}, ...terms.map((t) => h('tr', {}, h('td', {}, t.holder), h('td', {}, String(t.token)), h('td', { title: t.from }, ago(t.from)),
      h('td', { title: t.until }, t.until ? ago(t.until) : 'now'), h('td', {}, t.until ? t.ended || '' : 'holds it')))));
}

/**
 * command is a line for a shell, with a button that copies it.
 * @param {string} text
 */
function command(text) {
  const button = h('button', {
    type: 'button', 'aria-label': `Copy ${text}`,
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        setText(button, 'Copied');
      } catch { // not over plain HTTP from another machine
        getSelection()?.selectAllChildren(code);
        setText(button, 'Selected');
      }
    },
  }, 'Copy');
  const code = h('code', {}, text);
  return h('p.command', {}, code, button);
}
