// @ts-check
// Follows the server's stream of changes, and comes back to it when it breaks off.
import { ask, messages, Problem } from './api.js';

// A stream that is silent for this time is dead, whatever the connection looks like: the server beats every 5 s.
const silence = 15_000;
const shortest = 500, longest = 8_000;

/**
 * @typedef {object} Listener
 * @property {(wall: number) => void} opened   the stream is there; wall is the server's time of day, in ms
 * @property {(m: import('./api.js').Message) => void} message
 * @property {(why: string) => void} cut       it broke off, and is tried again
 * @property {(p: Problem) => void} refused    the server won't have it: it isn't tried again
 */

/** Live is one stream at a time. */
export class Live {
  /** @param {Listener} listener */
  constructor(listener) {
    this.listener = listener;
    this.stop = new AbortController();
  }

  /**
   * start follows the names of a prefix from now on, and nothing else.
   * @param {string} prefix
   */
  start(prefix) {
    this.stop.abort();
    this.stop = new AbortController();
    void this.follow(prefix, this.stop.signal);
  }

  /**
   * @param {string} prefix
   * @param {AbortSignal} signal
   */
  async follow(prefix, signal) {
    const at = { last: '' };
    let delay = shortest;
    while (!signal.aborted) {
      let why = 'the server closed the stream';
      try {
        await this.once(prefix, at, signal, () => { delay = shortest; });
      } catch (err) {
        if (signal.aborted) return;
        if (err instanceof Problem && err.status < 500 && err.status !== 429) {
          this.listener.refused(err);
          return;
        }
        why = err instanceof Problem ? err.message : 'the server can\'t be reached';
      }
      if (signal.aborted) return;
      this.listener.cut(why);
      await new Promise((resolve) => setTimeout(resolve, delay));
      delay = Math.min(delay * 2, longest);
    }
  }

  /**
   * @param {string} prefix
   * @param {{last: string}} at the last event that came
   * @param {AbortSignal} signal
   * @param {() => void} works
   */
  async once(prefix, at, signal, works) {
    const end = new AbortController();
    const abort = () => end.abort();
    signal.addEventListener('abort', abort);
    let timer = setTimeout(abort, silence);
    try {
      const resp = await ask(`/v1/watch?prefix=${encodeURIComponent(prefix)}`, {
        signal: end.signal, headers: at.last ? { 'Last-Event-ID': at.last } : {},
      });
      if (!resp.body) throw new Error('no stream');
      this.listener.opened(Date.parse(resp.headers.get('Date') || ''));
      await messages(resp.body, (m) => {
        if (signal.aborted) return;
        clearTimeout(timer);
        timer = setTimeout(abort, silence);
        works();
        // Only a beat closes what was sent together: what comes before it is not complete yet.
        if (m.event === 'beat' && m.id) at.last = m.id;
        this.listener.message(m);
      });
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    }
  }
}
