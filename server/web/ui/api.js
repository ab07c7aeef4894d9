// @ts-check
// The server's API, for the person who looks at the page: with a bearer token if there is one.

const key = 'leasehold.token';

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

/** @param {string} token */
export function setToken(token) {
  if (token) sessionStorage.setItem(key, token);
  else sessionStorage.removeItem(key);
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
  const headers = new Headers(init.headers);
  const token = sessionStorage.getItem(key);
  if (token) headers.set('Authorization', `Bearer ${token}`);
  const resp = await fetch(path, { ...init, headers, cache: 'no-store' });
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
 * @param {string} name
 * @param {string} [what] "history", "waiters" or "break"
 */
export function leasePath(name, what) {
  return `/v1/leases/${encodeURIComponent(name)}${what ? `/${what}` : ''}`;
}

/**
 * @typedef {{event: string, id: string, data: any}} Message
 */

/**
 * messages reads a stream of server-sent events; it returns when the stream has ended.
 * @param {ReadableStream<Uint8Array>} body
 * @param {(m: Message) => void} take
 */
export async function messages(body, take) {
  const reader = body.getReader(), decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n');
    rest = /** @type {string} */ (blocks.pop());
    for (const block of blocks) {
      const m = parse(block);
      if (m) take(m);
    }
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
