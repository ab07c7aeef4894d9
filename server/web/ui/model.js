// @ts-check
// What is known about every name, and since when. Times are milliseconds of performance.now(), but for the server's time of day.
import { moment } from './dom.js';

/**
 * @typedef {object} Lease  as the API shows it
 * @property {string} name
 * @property {string} state
 * @property {string} [holder]
 * @property {number} token
 * @property {number} [ttl]
 * @property {string} [session]
 * @property {string} [acquired]
 * @property {number} [expires_in]
 * @property {Record<string, string>} [info]
 * @property {string} [note]
 * @property {number} waiters
 * @property {string} [kind]  what the name is; a lease has none
 * @property {Share[]} [holders]  who shares it
 * @property {number} [limit]  of a semaphore
 * @property {Pause} [paused]  the election of that name
 * @property {Candidate[]} [candidates]  of that election; not on the stream
 * @property {Turn} [turn]  the last one of a job that was begun
 * @property {Turn} [completed_turn]  the last one that has ended, if that is another
 *
 * @typedef {object} Turn
 * @property {string} at  on the clock of its zone
 * @property {string} zone
 * @property {string} state  running, done, failed or lost
 * @property {number} [exit_code]
 * @property {string} holder
 * @property {number} token
 * @property {string} begun
 * @property {string} [ended]
 * @property {string} [next]  when the turn after it begins
 *
 * @typedef {object} Share
 * @property {string} holder
 * @property {number} [token]
 * @property {string} state
 * @property {string} session
 * @property {number} [slot]
 * @property {string} [mode]
 *
 * @typedef {object} Pause
 * @property {string} by
 * @property {string} [reason]
 * @property {string} since
 * @property {string} [until]  when it ends by itself
 *
 * @typedef {object} Candidate
 * @property {string} name
 * @property {string} holder
 * @property {string} role  leader, candidate or ineligible
 * @property {number} priority
 * @property {string} [zone]
 * @property {boolean} [ineligible]
 * @property {string} since
 *
 * @typedef {object} Expiry
 * @property {number} ttl    in ms; 0 when it isn't known
 * @property {number} until  when it runs out unless it is renewed; NaN when that isn't known
 * @property {boolean} exact the server knows how old the last renewal is; else it was seen, so that until is a bound
 * @property {boolean} [over] it was of a session that is over for good
 *
 * @typedef {object} Row
 * @property {Lease} lease
 * @property {Expiry} expiry of its own
 */

// What is known is stale when no beat has come for this time.
const patience = 10_000;

/** States in which somebody should look at a name. */
export const alarming = ['expired', 'in jeopardy', 'broken'];

/** The states, the worst first. */
export const states = ['expired', 'in jeopardy', 'broken', 'unreadable', 'handed over', 'contended', 'unknown', 'paused', 'held', 'free', 'declared'];

/** @type {Record<string, string>} */
const kinds = { rw: 'read/write lock', semaphore: 'semaphore', election: 'election', pool: 'pool of identities' };

/**
 * kindText says what a name is; '' for a lease.
 * @param {Lease} l
 */
export function kindText(l) {
  return l.kind ? kinds[l.kind] || l.kind : '';
}

/**
 * hostOf returns on which host a holder runs: as it says itself, else what its id begins with.
 * @param {string} holder
 * @param {Record<string, string>} [info]
 */
export function hostOf(holder, info) {
  const slash = holder.indexOf('/');
  return info?.host || (slash > 0 ? holder.slice(0, slash) : holder);
}

/**
 * holdersText says who shares a name, in short.
 * @param {Lease} l
 */
export function holdersText(l) {
  const n = l.holders?.length || 0;
  return n > 1 ? `shared by ${n}` : '';
}

/**
 * outcome says what came of a turn of a job.
 * @param {Turn} t
 */
export function outcome(t) {
  return t.exit_code === undefined ? t.state : `exit code ${t.exit_code}`;
}

/**
 * turnText says when a turn of a job began, and what came of it.
 * @param {Turn} t
 */
export function turnText(t) {
  return `${t.at} ${t.zone}, ${outcome(t)}`;
}

/**
 * soleHolder returns the id of who holds a name, or its only share; '' when there is none, or several.
 * @param {Lease} l
 */
export function soleHolder(l) {
  return l.holder || (l.holders?.length === 1 ? l.holders[0].holder : '');
}

/**
 * pauseText says by whom an election was paused, why and until when.
 * @param {Pause} p
 */
export function pauseText(p) {
  return (p.reason ? `${p.by}: ${p.reason}` : p.by) + (p.until ? ` (until ${moment(p.until)})` : '');
}

/**
 * next returns the candidate that would lead if the leader stepped down; undefined if none may.
 * @param {Lease} l
 */
export function next(l) {
  return (l.candidates || []).filter((c) => c.holder !== l.holder && !c.ineligible)
    .sort((a, b) => b.priority - a.priority || Date.parse(a.since) - Date.parse(b.since))[0];
}

/** Model is all that is known. */
export class Model {
  constructor() {
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    /** @type {Map<string, Row>|null} what comes after a reset, until it is complete */
    this.incoming = null;
    /** @type {Map<string, Expiry>} */
    this.sessions = new Map(); // that keep names
    this.names = 0; // changes whenever a name comes or goes
    this.version = 0; // changes with whatever states are judged by
    this.beatAt = NaN;
    this.openedAt = NaN; // when the stream was opened
    this.age = 0; // of what the server knew, at the last beat
    this.error = '';
    this.wall = NaN; // the server's time of day when performance.now() was 0
    /** What is called with each change of a name that is told, but for what is told at the beginning. @type {(before: Lease|undefined, after: Lease|undefined) => void} */
    this.changed = () => {};
  }

  /** forget leaves nothing known. */
  forget() {
    this.rows.clear();
    this.sessions.clear();
    this.version++;
    this.incoming = null;
    this.names++;
    this.beatAt = NaN;
  }

  get loaded() {
    return !Number.isNaN(this.beatAt);
  }

  /**
   * opened begins with a stream. What was not complete when the one before broke off is sent again.
   * @param {number} wall the server's time of day, in ms
   * @param {number} now
   */
  opened(wall, now) {
    this.wall = wall - now;
    this.openedAt = now;
    this.incoming = null;
  }

  /**
   * take notes one message of the stream.
   * @param {import('./api.js').Message} m
   * @param {number} now
   */
  take(m, now) {
    this.version++;
    switch (m.event) {
      case 'reset':
        // While nothing is known, names are shown as they come.
        if (this.loaded) this.incoming = new Map();
        else this.rows.clear();
        break;
      case 'lease':
        this.change(m.data, now);
        break;
      case 'session':
        this.sessions.set(m.data.session, expiry(m.data, now));
        break;
      case 'beat':
        this.tidy();
        if (this.incoming) {
          this.rows = this.incoming;
          this.incoming = null;
          this.names++;
        }
        this.beatAt = now;
        this.age = m.data.age * 1000;
        this.error = m.data.error || '';
        break;
    }
  }

  /** tidy forgets sessions that have become more than there are names. */
  tidy() {
    if (this.incoming || this.sessions.size <= this.rows.size) return;
    const keep = new Set([...this.rows.values()].map((r) => r.lease.session));
    for (const id of this.sessions.keys()) if (!keep.has(id)) this.sessions.delete(id);
  }

  /**
   * @param {{lease: Lease, gone?: boolean}} e
   * @param {number} now
   */
  change(e, now) {
    const rows = this.incoming || this.rows;
    const { name } = e.lease;
    if (this.loaded && !this.incoming) this.changed(rows.get(name)?.lease, e.gone ? undefined : e.lease);
    if (e.gone) {
      rows.delete(name);
      this.names++;
      return;
    }
    if (!rows.has(name)) this.names++;
    rows.set(name, row(e.lease, now));
  }

  /**
   * staleFor returns how old the knowledge is if it is too old to be shown as current, else 0.
   * @param {number} now
   */
  staleFor(now) {
    if (!this.loaded) return 0;
    return this.error || now - this.beatAt > patience ? now - this.beatAt + this.age : 0;
  }

  /**
   * asOf is when the server last looked at its store: states are judged as of then; before it has said so, when it was asked.
   */
  get asOf() {
    return this.loaded ? this.beatAt - this.age : this.openedAt;
  }

  /**
   * heldFor is for how long a lease has been held, by the clocks of servers, in ms; NaN when that isn't known.
   * @param {Lease} l
   * @param {number} now
   * @param {number} [wall] the server's time of day when performance.now() was 0
   */
  heldFor(l, now, wall = this.wall) {
    return l.acquired ? wall + now - Date.parse(l.acquired) : NaN;
  }

  /**
   * expiry returns when a hold runs out: with its session, if one keeps it.
   * @param {Row} row
   * @returns {Expiry}
   */
  expiry(row) {
    return (row.lease.session && this.sessions.get(row.lease.session)) || row.expiry;
  }

  /**
   * judge returns the state of a row, as of the server's last look, or of when it was read. The last look stands still while none
   * succeeds, so that of what is stale the last known state is returned.
   * @param {Row} row
   * @param {number} [asOf]
   */
  judge(row, asOf = this.asOf) {
    const l = row.lease;
    if (l.paused && l.state === 'free') return 'paused';
    if (l.state !== 'held') return l.state;
    const { until, ttl } = this.expiry(row);
    if (!Number.isNaN(until)) {
      const left = until - asOf;
      if (left <= 0) return 'expired';
      if (left < ttl / 3) return 'in jeopardy';
    }
    return l.waiters > 0 ? 'contended' : 'held';
  }
}

/**
 * @typedef {object} Census  all names by their states
 * @property {string} of       the knowledge that it is of
 * @property {string[]} names  all, in order
 * @property {Map<string, string>} state
 * @property {Map<string, string[]>} byState  the worst first; names in order
 * @property {number} waiting
 */

const manyNames = 2000, rest = 500; // from so many names on, all are judged every so many ms at most

/** Counter judges all names, once for all that want to know. */
export class Counter {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.at = -Infinity;
    this.sorted = /** @type {string[]} */ ([]);
    this.sortedOf = -1;
    /** @type {Census} */
    this.last = { of: '', names: [], state: new Map(), byState: new Map(), waiting: 0 };
  }

  /**
   * count returns the same census as before while nothing has changed.
   * @param {number} now
   */
  count(now) {
    const { model } = this, of = `${model.version}`;
    if (of === this.last.of || (model.rows.size > manyNames && this.last.names.length > manyNames && now - this.at < rest)) return this.last;
    this.at = now;
    if (this.sortedOf !== model.names) {
      this.sorted = [...model.rows.keys()].sort();
      this.sortedOf = model.names;
    }
    const state = new Map(), byState = new Map(states.map((s) => [s, /** @type {string[]} */ ([])]));
    let waiting = 0;
    for (const name of this.sorted) {
      const row = model.rows.get(name);
      if (!row) continue;
      const s = model.judge(row);
      state.set(name, s);
      const list = byState.get(s);
      if (list) list.push(name);
      else byState.set(s, [name]);
      waiting += row.lease.waiters;
    }
    this.last = { of, names: this.sorted, state, byState, waiting };
    return this.last;
  }
}

/**
 * expiry is when something runs out that was told just now.
 * @param {{ttl?: number, expires_in?: number, gone?: boolean}} told
 * @param {number} now
 * @returns {Expiry}
 */
function expiry(told, now) {
  if (told.gone) return { ttl: 0, until: -Infinity, exact: true, over: true };
  const exact = told.expires_in !== undefined, left = exact ? told.expires_in : told.ttl;
  return { ttl: (told.ttl || 0) * 1000, until: left === undefined ? NaN : now + left * 1000, exact };
}

/**
 * @param {Lease} lease
 * @param {number} now
 * @returns {Row}
 */
export function row(lease, now) {
  // Of a lease that a session keeps, its own record says nothing about how much is left.
  const told = lease.session && lease.expires_in === undefined ? { ttl: lease.ttl } : lease;
  const own = expiry(lease.holder ? told : {}, now);
  if (told !== lease) own.until = NaN;
  return { lease, expiry: own };
}
