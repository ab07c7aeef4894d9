// @ts-check
// Giving a value of a pool back in its holder's stead.
import { ask } from './api.js';
import { leasehold, quote } from './command.js';
import { openDialog } from './dialog.js';
import { duration, h } from './dom.js';
import { explained } from './operations.js';

/**
 * openRelease frees a value, and says before what happens then.
 * @param {import('./pools.js').Identity} of
 * @param {(said: string) => void} done
 */
export function openRelease(of, done) {
  const typed = /** @type {HTMLInputElement} */ (h('input', { id: 'confirm-name', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false' }));
  const left = of.expires_in ? duration(of.expires_in * 1000) : '';
  openDialog(`Release ${of.value} of ${of.pool}`, {
    kind: 'danger',
    body: [
      h('p', {}, `${of.as || of.holder} loses the value, and the next machine that asks may get it.`),
      h('div', {}, h('p', {}, 'What may still be running'), h('ul', {},
        h('li', {}, `${of.holder} gets no notice. While it runs, two machines may use ${of.value}.`),
        h('li', {}, of.kept === 'running' ? 'It stops using the value when its next renewal is refused.' : `It was to keep the value ${left ? `for another ${left}` : 'for good'}: nothing renews it, and it may never notice.`),
        h('li', {}, 'Ids that it makes from now on may be made again by the next one. Release it only if that machine is gone.'))),
      h('label', {}, h('span', {}, 'Type ', h('code', {}, of.value), ' to confirm'), typed),
    ],
    confirm: 'Release the value',
    ready: () => typed.value === of.value,
    command: () => (of.as ? leasehold('id release', of.pool, { as: of.as }) : `leasehold id release ${quote(of.pool)} ${quote(of.value)} --token ${of.token} --store ${quote(location.origin)}`),
    async submit() {
      const q = of.as ? { as: of.as } : { holder: of.holder, token: String(of.token) };
      try {
        await ask(`/v1/identities/${encodeURIComponent(of.pool)}/${encodeURIComponent(of.value)}?${new URLSearchParams(q)}`, { method: 'DELETE' });
      } catch (err) {
        throw explained(err);
      }
      done(`${of.value} is free. ${of.as || of.holder} got no notice.`);
    },
  });
}
