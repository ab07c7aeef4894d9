// @ts-check
// Who looks at the page: by a token that is pasted, or by a login with an issuer.
import { hasToken, keptLogin, onRefused, setToken } from './api.js';
import { openDialog } from './dialog.js';
import { h } from './dom.js';

export const loginOf = () => import('./login.js');

onRefused(async () => keptLogin() !== null && (await loginOf()).renew());

let failed = ''; // why the last login came to nothing

/**
 * takeAnswer takes an issuer's answer out of the address, where nothing else is to see it, and puts the view there from which the login
 * began. An answer counts once, and only in the tab that has begun a login with its state.
 * @returns {import('./login.js').Answer|null}  null if there is none, or none that counts
 */
export function takeAnswer() {
  const params = new URLSearchParams(location.search);
  if (!params.has('state') || !(params.has('code') || params.has('error'))) return null;
  const text = sessionStorage.getItem('leasehold.login.begun');
  sessionStorage.removeItem('leasehold.login.begun');
  /** @type {import('./login.js').Begun|null} */
  const begun = text === null ? null : JSON.parse(text);
  if (!begun || begun.state !== params.get('state')) {
    history.replaceState(null, '', location.pathname);
    failed = `The answer to a login that this tab has not begun, or has finished before, was ignored.${hasToken() ? ' You are signed in as before.' : ''}`;
    return null;
  }
  history.replaceState(null, '', location.pathname + begun.back);
  return { begun, params };
}

/**
 * settle finishes a login, and returns why it came to nothing, or ''.
 * @param {import('./login.js').Answer|null} answer
 */
export async function settle(answer) {
  if (!answer) return failed;
  try {
    await (await loginOf()).finish(answer);
    failed = '';
  } catch (err) {
    failed = err instanceof Error ? err.message : String(err);
  }
  return failed;
}

/**
 * followLogin renews a login, and says when it has ended.
 * @param {(text: string, buttons: HTMLElement[]) => void} say
 */
export async function followLogin(say) {
  if (!keptLogin()) return;
  (await loginOf()).follow((host, again) => {
    const text = `Your login with ${host} has ended.`;
    const go = h('button', { type: 'button', onclick: () => again().catch((err) => say(`${text} ${err.message}`, [go])) }, 'Log in again');
    say(text, [go]);
  });
}

/**
 * forget drops a token that the server refuses, and returns why it is no good.
 * @param {string} message  of the server
 */
export function forget(message) {
  const kept = keptLogin();
  setToken('');
  return kept && Date.now() >= kept.until ? `Your login with ${new URL(kept.issuer).host} has ended. ${message}` : message;
}

/**
 * signIn asks who is there.
 * @param {string} why  it is asked
 * @param {() => void} done  called when another token is there
 */
export function signIn(why, done) {
  const token = h('input', { type: 'password', name: 'token', autocomplete: 'off', required: !hasToken() });
  const logins = h('div.logins');
  const reason = why || (hasToken() ? '' : failed);
  openDialog('Who is there?', {
    body: [
      reason ? h('p.problem', { role: 'alert' }, reason) : null,
      logins,
      h('p', {}, 'Your bearer token at this server. The page sends it to this server only, and keeps it until this tab is closed.'),
      hasToken() ? h('p', {}, 'Leave it empty to sign out.') : null,
      h('label', {}, 'Token ', token),
    ],
    confirm: 'Sign in',
    async submit() {
      failed = '';
      setToken(/** @type {HTMLInputElement} */ (token).value.trim());
      done();
    },
  });
  void offer(logins);
}

/**
 * offer shows the issuers with which one can log in.
 * @param {HTMLElement} place
 */
async function offer(place) {
  const { begin, hostOf, offers } = await loginOf();
  const all = await offers().catch(() => []);
  const problem = h('p.problem', { role: 'alert', hidden: true });
  const hosts = all.map((l) => hostOf(l.issuer));
  place.replaceChildren(...all.flatMap((login, i) => {
    const alone = hosts.filter((host) => host === hosts[i]).length === 1;
    const go = async () => {
      try {
        await begin(login);
      } catch (err) {
        problem.hidden = false;
        problem.textContent = err instanceof Error ? err.message : String(err);
      }
    };
    return [
      h('button.primary', { type: 'button', disabled: Boolean(login.problem), onclick: go }, `Log in with ${hosts[i]}${alone ? '' : new URL(login.issuer).pathname}`),
      login.problem ? h('p.problem', {}, `${login.problem[0].toUpperCase()}${login.problem.slice(1)}. Sign in with a token, or try again later.`) : null,
    ].filter((el) => el !== null);
  }), problem);
}
