// @ts-check
// What is known about every name, and since when. Times are milliseconds of performance.now(), but for the server's time of day.

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
 * @property {Pause} [paused]  the election of that name
 *
 * @typedef {object} Pause
 * @property {string} by
 * @property {string} [reason]
 * @property {string} since
 *
 * @typedef {object} Row
 * @property {Lease} lease
 * @property {number} until  when it runs out unless it is renewed; NaN when that isn't known
 * @property {boolean} exact the server knows how old the last renewal is; else it was seen, so that until is a bound
 */

// What is known is stale when no beat has come for so long.
const patience = 10_000;

/** The states, the worst first. */
export const states = ['expired', 'in jeopardy', 'broken', 'handed over', 'contended', 'unknown', 'paused', 'held', 'free'];

/**
 * pauseText says by whom an election was paused, and why.
 * @param {Pause} p
 */
export function pauseText(p) {
  return p.reason ? `${p.by}: ${p.reason}` : p.by;
}

/** Model is all that is known. */
export class Model {
  constructor() {
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    /** @type {Map<string, Row>|null} what comes after a reset, until it is complete */
    this.incoming = null;
    this.names = 0; // changes whenever a name comes or goes
    this.beatAt = NaN;
    this.age = 0; // of what the server knew, at the last beat
    this.error = '';
    this.wall = NaN; // the server's time of day when performance.now() was 0
  }

  /** forget leaves nothing known. */
  forget() {
    this.rows.clear();
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
    this.incoming = null;
  }

  /**
   * take notes one message of the stream.
   * @param {import('./api.js').Message} m
   * @param {number} now
   */
  take(m, now) {
    switch (m.event) {
      case 'reset':
        this.incoming = new Map();
        break;
      case 'lease':
        this.change(m.data, now);
        break;
      case 'beat':
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

  /**
   * @param {{lease: Lease, gone?: boolean}} e
   * @param {number} now
   */
  change(e, now) {
    const rows = this.incoming || this.rows;
    const { name } = e.lease;
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
   * asOf is when the server last looked at its store: states are judged as of then.
   */
  get asOf() {
    return this.beatAt - this.age;
  }

  /**
   * heldFor is for how long a lease has been held, by the clocks of servers, in ms; NaN when that isn't known.
   * @param {Lease} l
   * @param {number} now
   */
  heldFor(l, now) {
    return l.acquired ? this.wall + now - Date.parse(l.acquired) : NaN;
  }

  /**
   * judge returns the state of a row, as of the server's last look.
   * @param {Row} row
   * @param {boolean} stale
   */
  judge(row, stale) {
    const l = row.lease;
    if (stale) return 'unknown';
    if (l.paused && l.state === 'free') return 'paused';
    if (l.state !== 'held') return l.state;
    if (!Number.isNaN(row.until) && l.ttl) {
      const left = row.until - this.asOf;
      if (left <= 0) return 'expired';
      if (left < l.ttl * 1000 / 3) return 'in jeopardy';
    }
    return l.waiters > 0 ? 'contended' : 'held';
  }
}

/**
 * @param {Lease} lease
 * @param {number} now
 * @returns {Row}
 */
export function row(lease, now) {
  const exact = lease.expires_in !== undefined;
  // A lease that a session keeps isn't renewed itself, so that nothing is seen of how much is left of it.
  const left = lease.session || !lease.holder ? NaN : exact ? lease.expires_in : lease.ttl;
  return { lease, until: left === undefined ? NaN : now + left * 1000, exact };
}
