// @ts-check
// The line that says whether all is well, and if not, what isn't, the worst first.
import { byID, duration, h } from './dom.js';

/** What people want to know of, the worst first: how it is said of one name and of several, and how bad it is. */
const troubles = [
  { state: 'expired', one: 'has expired: its holder has not renewed it', many: 'have expired: their holders have not renewed them', level: 'bad' },
  { state: 'in jeopardy', one: 'is in jeopardy: it expires soon unless it is renewed', many: 'are in jeopardy: they expire soon unless they are renewed', level: 'bad' },
  { state: 'broken', one: 'is broken, and its holder has not let go', many: 'are broken, and their holders have not let go', level: 'bad' },
  { state: 'unreadable', one: 'can’t be read', many: 'can’t be read', level: 'bad' },
  { state: 'handed over', one: 'is handed over, and not yet taken', many: 'are handed over, and not yet taken', level: 'warn' },
  { state: 'paused', one: 'is paused', many: 'are paused', level: 'warn' },
];
const named = 3; // names that are said of each

/** Overview is the line. */
export class Overview {
  /** @param {import('./model.js').Model} model */
  constructor(model) {
    this.model = model;
    this.el = byID('overview');
    this.of = '';
  }

  render() {
    const { model } = this, now = performance.now(), stale = model.staleFor(now);
    this.el.hidden = !model.loaded;
    if (!model.loaded) return;
    if (stale > 0) {
      this.say('bad', `stale ${Math.floor(stale / 1000)}`, [h('b', {}, model.error ? 'The store does not answer the server.' : 'The server does not answer.'),
        ` What is shown is as of ${duration(Math.floor(stale / 1000) * 1000)} ago. Holders may rely on their leases until these run out; nobody takes a name meanwhile unless the store answers it.`]);
      return;
    }
    const of = `${model.version}`;
    if (of === this.of) return;
    this.of = of;
    const by = new Map(troubles.map((t) => [t.state, /** @type {string[]} */ ([])]));
    let held = 0, waiting = 0;
    for (const [name, row] of model.rows) {
      const state = model.judge(row, false);
      by.get(state)?.push(name);
      if (state === 'held' || state === 'contended') held++;
      waiting += row.lease.waiters;
    }
    const bad = troubles.filter((t) => by.get(t.state)?.length);
    const rest = `${held.toLocaleString('en')} held${waiting > 0 ? `, ${waiting.toLocaleString('en')} waiting` : ''}`;
    if (bad.length === 0) {
      this.say('good', `good ${rest}`, [h('b', {}, 'All is well.'), ` ${rest}.`]);
      return;
    }
    const parts = bad.map((t) => {
      const names = (by.get(t.state) || []).sort();
      const links = names.slice(0, named).flatMap((name, i) => [i > 0 ? ', ' : '', h('a', { href: `#/${encodeURIComponent(name)}` }, name)]);
      const more = names.length > named ? ` and ${(names.length - named).toLocaleString('en')} more` : '';
      return h('span', {}, ...links, `${more} ${names.length > 1 ? t.many : t.one}.`);
    });
    this.say(bad[0].level, parts.map((p) => p.textContent).join() + rest, [...parts, h('span.soft', {}, `${rest}.`)]);
  }

  /**
   * say changes the line if it says something else.
   * @param {string} level
   * @param {string} key
   * @param {(Node|string)[]} parts
   */
  say(level, key, parts) {
    if (this.el.dataset.key === key) return;
    this.el.dataset.key = key;
    this.el.dataset.level = level;
    this.el.replaceChildren(...parts);
    if (level === 'bad' && key.startsWith('stale')) this.of = '';
  }
}
