// @ts-check
// What is asked for only while it is looked at: a few questions at a time, and none again before its answer is old.
import { Problem } from './api.js';

const atOnce = 3, most = 500;

/** @template T */
export class Lazy {
  /**
   * @param {(path: string) => Promise<Response>} ask
   * @param {(key: string) => string} path
   * @param {number} old  ms after which an answer is asked for again
   */
  constructor(ask, path, old = 5_000) {
    this.ask = ask;
    this.path = path;
    this.old = old;
    /** @type {Map<string, {at: number, busy: boolean, value?: T, problem: string}>} */
    this.known = new Map();
    this.busy = 0;
  }

  /**
   * get returns what is known, and asks if that is old; undefined while nothing is known.
   * @param {string} key
   * @param {number} now
   */
  get(key, now) {
    let entry = this.known.get(key);
    if (!entry) {
      if (this.known.size >= most) this.known.delete(/** @type {string} */ (this.known.keys().next().value));
      this.known.set(key, entry = { at: -Infinity, busy: false, problem: '' });
    }
    if (!entry.busy && this.busy < atOnce && now - entry.at > this.old) void this.read(key, entry);
    return entry;
  }

  /**
   * @param {string} key
   * @param {{at: number, busy: boolean, value?: T, problem: string}} entry
   */
  async read(key, entry) {
    entry.busy = true;
    this.busy++;
    try {
      entry.value = await (await this.ask(this.path(key))).json();
      entry.problem = '';
    } catch (err) {
      entry.problem = err instanceof Problem ? err.message : 'the server can’t be reached';
    } finally {
      entry.at = performance.now();
      entry.busy = false;
      this.busy--;
    }
  }

  /** @param {string} key */
  forget(key) {
    this.known.delete(key);
  }
}
