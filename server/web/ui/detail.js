// @ts-check
// One name: who holds it, who did, who waits, what is written down, and what to do about it.
import { ask, leasePath, Problem } from './api.js';
import { badge } from './badge.js';
import { command, leasehold, quote } from './command.js';
import { duration, h, moment, setText } from './dom.js';
import { Expiry } from './expiry.js';
import { fitting, lanes, spans } from './lanes.js';
import { kindText, row, soleHolder, turnText } from './model.js';
import { Operator } from './operator.js';
import { candidates, queue, terms, turns } from './tables.js';
import { digits } from './token.js';
import { means } from './words.js';

const reread = 3_000; // for what the stream doesn't tell
const patience = 10_000; // after which what was read is not current

/**
 * @typedef {object} Found  what the server said about the name
 * @property {import('./model.js').Row} row
 * @property {import('./lanes.js').Term[]} terms
 * @property {import('./model.js').Turn[]} turns  of a job
 * @property {import('./tables.js').Waiter[]} waiters
 * @property {import('./operator.js').Me} me
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
    this.root = h('section', { id: 'detail', 'aria-labelledby': 'title' });
    this.name = '';
    this.from = '#/';
    this.span = 0; // that was chosen; 0 for the one that fits
    this.readAt = this.triedAt = -Infinity;
    this.knewAt = NaN; // when what was found was so
    this.reading = false;
    this.seen = ''; // the row that was read for
    /** @type {Found|null} */
    this.found = null;
    this.operator = new Operator(() => { this.triedAt = -Infinity; this.render(); });
    this.parts = this.frame('');
    new ResizeObserver(() => this.draw()).observe(this.root);
  }

  /**
   * @param {string} name
   * @param {string} from  the address to go back to
   */
  open(name, from) {
    this.name = name;
    this.from = from;
    this.span = 0;
    this.found = null;
    this.readAt = this.triedAt = -Infinity;
    this.operator = new Operator(() => { this.triedAt = -Infinity; this.render(); });
    this.parts = this.frame(name);
    this.root.replaceChildren(...this.parts.all);
    this.parts.title.focus();
    this.render();
  }

  /**
   * fresh reports whether a name is shown as it is, by what is read every few seconds.
   * @param {number} now
   */
  fresh(now) {
    return this.name !== '' && now - this.readAt < patience;
  }

  /** forget has what was read count as old. */
  forget() {
    this.readAt = this.triedAt = -Infinity;
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
    const state = h('span.badge'), meaning = h('p.meaning'), facts = h('dl.facts'), picture = h('div.picture');
    const past = h('div'), ran = h('div', { hidden: true });
    const waiters = h('div'), standing = h('div', { hidden: true }), record = h('code'), problem = h('p.problem', { role: 'alert', hidden: true });
    const expiry = new Expiry();
    const choice = h('div.spans', { role: 'group', 'aria-label': 'How much of the past' }, ...spans.map(({ text, ms }) => h('button', {
      type: 'button', 'data-ms': ms, onclick: () => { this.span = ms; this.draw(); },
    }, text)));
    const body = h('div', { hidden: true },
      h('div.titled', {}, h('h3', {}, 'Who held it'), choice), picture, legend(),
      h('h3', {}, 'Who waits at this server'), waiters, standing, ran, past,
      h('h3', {}, 'The same by command'),
      ...[leasehold('show', name), leasehold('history', name), `curl ${quote(location.origin + leasePath(name))}`].map((text) => command(text).el),
      h('h3', {}, 'Record'), h('pre', { tabindex: '0', 'aria-label': 'Record, as JSON' }, record));
    const all = [
      h('p.back', {}, h('a', { href: this.from }, '← Back')),
      h('div.heading', {}, title, state, expiry.el, this.operator.buttons, meaning), this.operator.notes, problem, facts, body,
    ];
    return { all, body, title, state, meaning, facts, picture, past, ran, waiters, standing, record, problem, expiry, choice };
  }

  /** render shows how it is now, and reads again what has changed. */
  render() {
    if (!this.name) return;
    const now = performance.now(), live = this.model.rows.get(this.name);
    const key = live ? `${live.lease.token} ${live.lease.state} ${live.lease.waiters} ${live.lease.paused?.since} ${live.lease.turn?.token} ${live.lease.turn?.state}` : '';
    if (!this.reading && (key !== this.seen || now - this.triedAt > reread)) {
      this.seen = key;
      void this.read();
    }
    const best = this.best(now);
    this.parts.facts.hidden = best === null;
    if (!best) {
      badge(this.parts.state, 'unknown');
      this.parts.expiry.el.hidden = true;
      return;
    }
    const { row: { lease }, expiry, stale, wall } = best, state = this.model.judge(best.row, best.asOf);
    badge(this.parts.state, state, '', stale);
    this.parts.expiry.el.hidden = !lease.holder;
    this.parts.expiry.show(lease, expiry, now, stale);
    setText(this.parts.meaning, means(stale ? 'unknown' : state, lease, expiry, this.found ? this.found.terms : [], now, wall));
    this.facts(lease, expiry, now, stale, wall);
    if (this.found) this.operator.show(this.found.row.lease, state, this.found.me, !this.fresh(now), now);
  }

  /**
   * best is what is known of the name: by the stream, else by what is read every few seconds, else what was known last; or null.
   * @param {number} now
   */
  best(now) {
    const { model, found } = this, live = model.rows.get(this.name);
    if (live && model.staleFor(now) === 0) {
      const expiry = model.expiry(live);
      return { row: live, expiry: Number.isNaN(expiry.until) && found ? found.row.expiry : expiry, stale: false, asOf: model.asOf, wall: model.wall };
    }
    if (found && this.fresh(now)) return { row: found.row, expiry: found.row.expiry, stale: false, asOf: this.readAt, wall: found.wall };
    const last = found ? found.row : live;
    return last ? { row: last, expiry: last.expiry, stale: true, asOf: found ? this.knewAt : model.asOf, wall: found ? found.wall : model.wall } : null;
  }

  async read() {
    this.reading = true;
    this.triedAt = performance.now();
    const { name } = this;
    try {
      const [lease, history, waiters, me] = await Promise.all([leasePath(name), leasePath(name, 'history'), leasePath(name, 'waiters'),
        `/v1/whoami?name=${encodeURIComponent(name)}`].map((path) => ask(path)));
      const at = performance.now(), body = await lease.json(), past = await history.json();
      /** @type {Found} */
      const found = {
        row: row(body, at), terms: past.terms, turns: past.turns || [], waiters: (await waiters.json()).waiters, me: await me.json(),
        wall: Date.parse(lease.headers.get('Date') || '') - at,
      };
      if (name !== this.name) return;
      this.found = found;
      this.readAt = this.knewAt = at;
      setText(this.parts.record, JSON.stringify(body, null, 2));
      this.problem('');
      this.parts.body.hidden = false;
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
   * @param {import('./model.js').Expiry} expiry
   * @param {number} now
   * @param {boolean} stale
   * @param {number} wall
   */
  facts(l, expiry, now, stale, wall) {
    const held = stale ? NaN : this.model.heldFor(l, now, wall), ttl = expiry.ttl || (l.ttl || 0) * 1000;
    /** @type {[string, string][]} */
    const all = [['Holder', soleHolder(l) || (l.holders?.length ? `${l.holders.length} share it` : 'nobody')]];
    if (l.kind) all.push(['Kind', kindText(l)]);
    if (l.holders && l.holders.length > 1) l.holders.forEach((s, i) => all.push([`Holder ${i + 1}`, s.holder]));
    if (l.holder) all.push(['Held for', Number.isNaN(held) ? '–' : duration(held)], ['Since', l.acquired ? moment(l.acquired) : '–']);
    if (l.token) all.push([l.holder ? 'Token' : 'Token, the last', String(l.token)]);
    if (ttl > 0) all.push(['TTL', duration(ttl)]);
    if (l.session) all.push(['Kept by session', l.session]);
    if (l.note) all.push(['Note', l.note]);
    if (l.turn) all.push(['Last turn', turnText(l.turn)]);
    if (l.completed_turn) all.push(['Last turn that ended', turnText(l.completed_turn)]);
    if (l.turn?.next) all.push(['Next turn', moment(l.turn.next)]);
    for (const [key, value] of Object.entries(l.info || {})) all.push([`It says: ${key}`, value]);
    const { facts } = this.parts;
    if (facts.children.length !== all.length) facts.replaceChildren(...all.map(() => h('div', {}, h('dt'), h('dd'))));
    all.forEach(([key, value], i) => {
      const [dt, dd] = facts.children[i].children;
      setText(dt, key);
      if (!key.startsWith('Token')) setText(dd, value);
      else if (dd.textContent !== value) dd.replaceChildren(digits(Number(value)));
    });
  }

  /**
   * present says of the last term how it stands.
   * @param {number} now
   */
  present(now) {
    const best = this.best(now), state = best ? this.model.judge(best.row, best.asOf) : '';
    return { expired: 'not renewed', broken: 'broken, and not let go', 'handed over': 'handed over, and not taken' }[state] || 'holds it';
  }

  /** draw shows what was read. */
  draw() {
    if (!this.found || !this.name) return;
    const { terms: past, turns: all, waiters, wall, row: { lease } } = this.found, at = performance.now(), now = wall + at;
    const ms = this.span || fitting(past, now), width = Math.floor(this.parts.picture.clientWidth);
    const { until, exact } = (this.best(at) || this.found.row).expiry;
    const end = lease.holder && exact && until < at ? Math.max(wall + until, Date.parse(lease.acquired || '') || 0) : now;
    if (width > 0) this.parts.picture.replaceChildren(past.length > 0 ? lanes(past, now, ms, width, end) : h('p.empty', {}, lease.holders ? 'Earlier shares of it are not kept.' : 'Nobody ever held it.'));
    for (const button of this.parts.choice.children) button.setAttribute('aria-pressed', String(button.getAttribute('data-ms') === String(ms)));
    this.parts.past.hidden = past.length === 0;
    this.parts.past.replaceChildren(h('h3', {}, 'Its terms, the last first'), terms(past, now, this.present(at)));
    this.parts.ran.hidden = all.length === 0;
    this.parts.ran.replaceChildren(h('h3', {}, 'Its turns, the last first'), turns(all, now));
    this.parts.waiters.replaceChildren(queue(waiters));
    const stand = lease.candidates || [];
    this.parts.standing.hidden = stand.length === 0;
    this.parts.standing.replaceChildren(h('h3', {}, 'Candidates'), candidates(stand, lease.holder || '', now));
  }
}

function legend() {
  const item = (/** @type {string} */ kind, /** @type {string} */ text) => h('span', {}, h(`i.${kind}`, { 'aria-hidden': 'true' }), text);
  return h('p.legend', {}, item('term', 'held'), item('now', 'holds it now'), item('gap', 'nobody held it'),
    item('overlap', 'two at once, by the clocks of the writers'), item('before', 'before the terms that are kept, which are the last 8'));
}
