// @ts-check
// The line that says whether all is well, and if not, what isn't, the worst first.
import { byID, duration, h } from './dom.js';

/** What people want to know of, the worst first: how it is said in short, of one name and of several, and how bad it is. */
const troubles = [
  { state: 'expired', short: 'not renewed', one: 'has expired: its holder has not renewed it', many: 'have expired: their holders have not renewed them', level: 'bad' },
  { state: 'in jeopardy', short: 'in jeopardy', one: 'is in jeopardy: it expires soon unless it is renewed', many: 'are in jeopardy: they expire soon unless they are renewed', level: 'bad' },
  { state: 'broken', short: 'broken', one: 'is broken, and its holder has not let go', many: 'are broken, and their holders have not let go', level: 'bad' },
  { state: 'unreadable', short: 'not readable', one: 'can’t be read', many: 'can’t be read', level: 'bad' },
  { state: 'handed over', short: 'handed over and not yet taken', one: 'is handed over, and not yet taken', many: 'are handed over, and not yet taken', level: 'warn' },
  { state: 'paused', short: 'paused', one: 'is paused', many: 'are paused', level: 'warn' },
];
/** What a store that doesn't answer stops, and what it doesn't. */
const holds = 'Each holder may rely on its lease until what was left of it then is over, and stops by itself if it can’t renew by then. Nobody new gets a name before the store answers again. Fencing tokens stay valid.';
const named = 3; // names that are said of each

/** Overview is the line. */
export class Overview {
  /**
   * @param {import('./model.js').Model} model
   * @param {import('./model.js').Counter} counter
   */
  constructor(model, counter) {
    this.model = model;
    this.counter = counter;
    this.el = byID('overview');
    this.of = '';
  }

  /** @param {boolean} [brief]  the view below says more */
  render(brief = false) {
    const { model } = this, now = performance.now(), stale = model.staleFor(now);
    this.el.hidden = !model.loaded;
    if (!model.loaded) return;
    if (stale > 0) {
      const why = model.error.replace(/^the store (does not answer|can't be reached)(: )?/, ''); // which is said anyway
      this.say('bad', `stale ${Math.floor(stale / 1000)} ${why}`, [h('b', {}, model.error ? `The store does not answer the server${why && `: ${why}`}.` : 'The server does not answer.'),
        ` What is shown is as of ${duration(Math.floor(stale / 1000) * 1000)} ago. ${holds}`]);
      return;
    }
    const census = this.counter.count(now);
    const of = `${census.of} ${brief}`;
    if (of === this.of) return;
    this.of = of;
    const by = census.byState, n = (/** @type {string} */ state) => by.get(state)?.length || 0;
    const held = n('held') + n('contended') + n('in jeopardy'), { waiting } = census;
    const bad = troubles.filter((t) => by.get(t.state)?.length);
    const rest = `${held.toLocaleString('en')} held${waiting > 0 ? `, ${waiting.toLocaleString('en')} waiting` : ''}`;
    if (bad.length === 0) {
      this.say('good', `good ${rest}`, [h('b', {}, 'All is well.'), ` ${rest}.`]);
      return;
    }
    if (brief) {
      const all = bad.map((t) => `${(by.get(t.state)?.length || 0).toLocaleString('en')} ${t.short}`).join(', ');
      this.say(bad[0].level, `brief ${all} ${rest}`, [h('b', {}, `To look at: ${all}.`), ` ${rest}.`]);
      return;
    }
    const parts = bad.map((t) => {
      const names = by.get(t.state) || [];
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
    if (key.startsWith('stale')) this.of = '';
  }
}
