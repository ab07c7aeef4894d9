// @ts-check
// Login with an OpenID Connect issuer: an authorization code and PKCE, as a public client. Codes and tokens travel between the browser and
// the issuer; the server only says which issuer it trusts, and judges the token as every bearer token.
import { ask, keptLogin, setToken } from './api.js';

/**
 * @typedef {{issuer: string, client_id: string, scopes: string, audience?: string, resource?: string, token: 'id_token'|'access_token',
 *   authorization_endpoint?: string, token_endpoint?: string, problem?: string}} Login
 * @typedef {{issuer: string, state: string, nonce: string, verifier: string, redirect: string, back: string}} Begun  in this tab
 * @typedef {{begun: Begun, params: URLSearchParams}} Answer  of the issuer, to what was begun
 */

export const begunKey = 'leasehold.login.begun';
const patience = 15_000; // with the issuer
const again = 30_000; // after a renewal that failed

/** Refusal is an answer of the issuer that no later try changes. */
class Refusal extends Error {}

/** offers returns the issuers with which one can log in. @returns {Promise<Login[]>} */
export async function offers() {
  return (await (await ask('/v1/login')).json()).logins;
}

/** @param {string} issuer */
export function hostOf(issuer) {
  return new URL(issuer).host;
}

/** @param {Uint8Array<ArrayBuffer>} bytes */
function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function random() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)));
}

/**
 * begin leaves for the issuer, and remembers in this tab what its answer has to fit, and which view to come back to.
 * @param {Login} login
 */
export async function begin(login) {
  if (!crypto.subtle) throw new Error('The browser proves a login (PKCE) only on pages that come over HTTPS, or from this machine. Open this page over HTTPS.');
  const to = new URL(login.authorization_endpoint || '');
  if (to.protocol !== 'https:' && to.protocol !== 'http:') throw new Error(`${hostOf(login.issuer)} has no address where people log in`);
  /** @type {Begun} */
  const begun = {
    issuer: login.issuer, state: random(), nonce: random(), verifier: random(),
    redirect: location.origin + location.pathname, back: location.search + location.hash,
  };
  const challenge = base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(begun.verifier))));
  const params = {
    response_type: 'code', client_id: login.client_id, redirect_uri: begun.redirect, scope: login.scopes, state: begun.state, nonce: begun.nonce,
    code_challenge: challenge, code_challenge_method: 'S256', audience: login.audience, resource: login.resource,
  };
  for (const [name, value] of Object.entries(params)) if (value) to.searchParams.set(name, value);
  sessionStorage.setItem(begunKey, JSON.stringify(begun));
  location.assign(to);
}

/**
 * finish exchanges the code of an answer, whose state has been found to be that of this tab, for a token.
 * @param {Answer} answer
 */
export async function finish({ begun, params }) {
  const host = hostOf(begun.issuer), from = params.get('iss');
  if (from !== null && from !== begun.issuer) throw new Error(`The answer is from another issuer than ${host}. Log in again.`);
  if (params.has('error')) throw new Error(refusal(host, params.get('error'), params.get('error_description')));
  const login = (await offers()).find((l) => l.issuer === begun.issuer);
  if (!login) throw new Error(`The server does not offer a login with ${host} any more.`);
  const got = await exchange(login, {
    grant_type: 'authorization_code', code: params.get('code') || '', redirect_uri: begun.redirect, code_verifier: begun.verifier,
  });
  const id = identity(login, got);
  if (id.nonce !== begun.nonce) throw new Error(`The answer of ${host} is to another login: its nonce is not the one of this tab. Log in again.`);
  keep(login, got, id);
}

/**
 * exchange asks the issuer for tokens.
 * @param {Login} login
 * @param {Record<string, string>} fields
 * @returns {Promise<Record<string, any>>}
 */
async function exchange(login, fields) {
  const host = hostOf(login.issuer);
  if (!login.token_endpoint) throw new Error(login.problem || `${host} can’t be asked now.`);
  const body = new URLSearchParams({ ...fields, client_id: login.client_id });
  if (login.resource) body.set('resource', login.resource);
  let resp;
  try {
    resp = await fetch(login.token_endpoint, {
      method: 'POST', body, credentials: 'omit', cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(patience),
    });
  } catch {
    throw new Error(`The browser gets no answer from ${host}: it is down, or it does not allow this page to ask it for tokens (CORS, for ${location.origin}). Log in again.`);
  }
  const got = await resp.json().catch(() => ({}));
  if (resp.ok) return got;
  const why = refusal(host, got.error || `status ${resp.status}`, got.error_description);
  throw resp.status < 500 && resp.status !== 429 ? new Refusal(why) : new Error(why);
}

/** @type {Record<string, string>} */
const meanings = {
  access_denied: 'you or the issuer said no',
  login_required: 'it wants you to log in there first',
  unauthorized_client: 'this page is not registered there as a public client with authorization codes and PKCE',
  invalid_client: 'this page is not registered there as a public client, without a secret',
  invalid_request: 'the request does not fit what is registered there, such as the redirect URI',
  invalid_scope: 'it does not give this page one of the scopes that the server’s policy names',
  invalid_grant: 'the code, or the login, has ended or was used before',
  server_error: 'it failed itself',
  temporarily_unavailable: 'it is overloaded',
};

/**
 * refusal says in plain words why an issuer gives no token.
 * @param {string} host
 * @param {any} error
 * @param {any} description  text of the issuer's, or of an address that anybody made: shown as text, without control characters
 */
function refusal(host, error, description) {
  const clean = (/** @type {any} */ text) => String(text ?? '').replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').trim().slice(0, 300);
  const code = clean(error), means = Object.hasOwn(meanings, code) ? `: ${meanings[code]}` : '';
  return `${host} refuses the login${means} (${code}).${clean(description) ? ` It says: “${clean(description)}”` : ''}`;
}

/**
 * claims reads what a JWT says. It came from the issuer itself, over TLS; whether its signature is right, the server judges.
 * @param {any} token
 * @returns {Record<string, any>|null}  null if it is no JWT
 */
function claims(token) {
  try {
    const part = String(token).split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(part), (c) => c.charCodeAt(0))));
  } catch {
    return null;
  }
}

/**
 * identity returns the claims of the ID token, which has to be the issuer's, for this page.
 * @param {Login} login
 * @param {Record<string, any>} got
 */
function identity(login, got) {
  const id = claims(got.id_token), host = hostOf(login.issuer);
  if (!id) throw new Refusal(`${host} returned no ID token. Is openid among the scopes?`);
  if (id.iss !== login.issuer || ![id.aud].flat().includes(login.client_id)) throw new Refusal(`The ID token of ${host} is from another issuer, or for another client than ${login.client_id}.`);
  return id;
}

/**
 * keep has the page use a token, and remembers in this tab how to renew it.
 * @param {Login} login
 * @param {Record<string, any>} got
 * @param {Record<string, any>} id  claims of the ID token
 * @param {string} [refresh]        the token for renewals so far
 */
function keep(login, got, id, refresh = '') {
  const token = got[login.token];
  if (typeof token !== 'string' || token === '') throw new Refusal(`${hostOf(login.issuer)} returned no ${login.token}.`);
  const of = claims(token) || {}, lasts = 1000 * Number(of.exp - of.iat || got.expires_in || 0), now = Date.now();
  setToken(token, {
    issuer: login.issuer, sub: id.sub, refresh: typeof got.refresh_token === 'string' ? got.refresh_token : refresh,
    until: lasts > 0 ? now + lasts : Infinity, renew: lasts > 0 ? now + 0.8 * lasts : Infinity,
  });
}

/** @type {Promise<boolean>|null} */
let running = null;

/** renew gets another token by the refresh token, and says whether there is one. */
export function renew() {
  running ||= renewal().finally(() => { running = null; });
  return running;
}

async function renewal() {
  const kept = keptLogin();
  if (!kept?.refresh) return false;
  try {
    const login = (await offers()).find((l) => l.issuer === kept.issuer);
    if (!login) throw new Refusal('the server does not offer that login any more');
    const got = await exchange(login, { grant_type: 'refresh_token', refresh_token: kept.refresh });
    const id = got.id_token ? identity(login, got) : { sub: kept.sub };
    if (keptLogin()?.refresh !== kept.refresh) return false; // signed out meanwhile, or as another
    if (id.sub !== kept.sub) throw new Refusal('it is another person');
    keep(login, got, id, kept.refresh);
    return true;
  } catch (err) {
    const now = keptLogin();
    if (err instanceof Refusal && now?.refresh === kept.refresh) setToken(null, { ...now, refresh: '' });
    return false;
  }
}

let following = false;

/**
 * follow renews the login before it ends, and says once when it has ended.
 * @param {(host: string, again: () => Promise<void>) => void} ended
 */
export function follow(ended) {
  if (following) return;
  following = true;
  let next = 0, said = NaN;
  setInterval(() => { // by this machine's time of day, which counts sleep, too
    const kept = keptLogin(), now = Date.now();
    if (!kept) return;
    if (kept.refresh && now >= kept.renew && now >= next) {
      next = now + again;
      void renew();
    } else if (now >= kept.until && kept.until !== said) {
      said = kept.until;
      ended(hostOf(kept.issuer), () => resume(kept.issuer));
    }
  }, 1000);
}

/** @param {string} issuer */
async function resume(issuer) {
  const login = (await offers()).find((l) => l.issuer === issuer);
  if (!login || login.problem) throw new Error(login?.problem || `The server does not offer a login with ${hostOf(issuer)} any more.`);
  await begin(login);
}
