// @ts-check
// The server's API, for the person who looks at the page: with a bearer token if there is one.

const key = 'leasehold.token', loginKey = 'leasehold.login';

/** Problem is an answer that says why something was not done. */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {Record<string, any>} body
   */
  constructor(status, body) {
    super(body.detail || body.title || `the server answered with status ${status}`);
    this.status = status;
    /** @type {string} */
    this.code = body.code || '';
  }
}

/**
 * @typedef {{issuer: string, sub: string, refresh: string, until: number, renew: number}} Kept  how a token was got by a login: until when it
 *   is good, and from when it is to be renewed, by this machine's time of day; null is never
 */

/**
 * setToken has requests bear a token, until the tab is closed; '' for none, null for the same as before.
 * @param {string|null} token
 * @param {Kept|null} [login]  by which it was got
 */
export function setToken(token, login = null) {
  if (token) sessionStorage.setItem(key, token);
  else if (token === '') sessionStorage.removeItem(key);
  if (login) sessionStorage.setItem(loginKey, JSON.stringify(login));
  else sessionStorage.removeItem(loginKey);
}

/** keptLogin returns how the token was got, or null if not by a login. @returns {Kept|null} */
export function keptLogin() {
  const text = sessionStorage.getItem(loginKey);
  if (text === null) return null;
  const kept = JSON.parse(text);
  return { ...kept, until: kept.until ?? Infinity, renew: kept.renew ?? Infinity };
}

/** @type {(() => Promise<boolean>)|null} */
let renewed = null;

/**
 * onRefused has fn try for another token when the server refuses the one that there is; fn returns whether it got one.
 * @param {() => Promise<boolean>} fn
 */
export function onRefused(fn) {
  renewed = fn;
}

export function hasToken() {
  return sessionStorage.getItem(key) !== null;
}

/**
 * ask sends a request and returns the answer if it is a good one.
 * @param {string} path
 * @param {RequestInit} [init]
 * @returns {Promise<Response>}
 */
export async function ask(path, init = {}) {
  const token = sessionStorage.getItem(key);
  let resp = await send(path, init, token);
  if (resp.status === 401 && token && renewed) {
    const now = () => sessionStorage.getItem(key);
    if (now() !== token || await renewed()) resp = await send(path, init, now());
  }
  if (resp.ok) return resp;
  /** @type {Record<string, any>} */
  let body = {};
  try {
    body = await resp.json();
  } catch {
    // a proxy's answer
  }
  throw new Problem(resp.status, body);
}

/**
 * @param {string} path
 * @param {RequestInit} init
 * @param {string|null} token
 */
function send(path, init, token) {
  const headers = new Headers(init.headers);
  if (token) headers.set('Authorization', `Bearer ${token}`);
  return fetch(path, { ...init, headers, cache: 'no-store' });
}

/**
 * @param {string} name
 * @param {string} [what] "history", "waiters" or "break"
 */
export function leasePath(name, what) {
  return `/v1/leases/${encodeURIComponent(name)}${what ? `/${what}` : ''}`;
}

/**
 * @typedef {{event: string, id: string, data: any}} Message
 */

const most = 12; // ms that messages are taken for at a time: else all that has come is one task, and nothing is drawn before its end

/**
 * messages reads a stream of server-sent events; it returns when the stream has ended.
 * @param {ReadableStream<Uint8Array>} body
 * @param {(m: Message) => void} take
 */
export async function messages(body, take) {
  const reader = body.getReader(), decoder = new TextDecoder();
  const { port1, port2 } = new MessageChannel(); // a timer would wait 4 ms each time
  let rest = '', spent = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      let at = performance.now();
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n');
      rest = /** @type {string} */ (blocks.pop());
      for (const block of blocks) {
        const m = parse(block);
        if (m) take(m);
        const now = performance.now();
        spent += now - at;
        at = now;
        if (spent < most) continue;
        await new Promise((resolve) => {
          port1.onmessage = resolve;
          port2.postMessage(null);
        });
        spent = 0;
        at = performance.now();
      }
    }
  } finally {
    port1.close();
  }
}

/**
 * @param {string} block
 * @returns {Message|null}
 */
function parse(block) {
  let event = '', id = '', data = '';
  for (const line of block.split('\n')) {
    const colon = line.indexOf(': ');
    const value = line.slice(colon + 2);
    switch (line.slice(0, colon)) {
      case 'event': event = value; break;
      case 'id': id = value; break;
      case 'data': data += value; break;
    }
  }
  return event ? { event, id, data: JSON.parse(data || '{}') } : null;
}
