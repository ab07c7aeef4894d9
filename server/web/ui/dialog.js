// @ts-check
// The page's one dialog: it has the focus while it is open, Escape closes it, and the focus goes back to where it was.
import { byID, h } from './dom.js';

/**
 * @typedef {object} Content
 * @property {(Node|null)[]} body
 * @property {string} confirm         the word on the button
 * @property {boolean} [danger]
 * @property {() => boolean} [ready]  whether it may be confirmed; asked at each input
 * @property {() => Promise<void>} submit  an error is shown, and the dialog stays
 */

/**
 * openDialog asks something, in the place of what was asked before.
 * @param {string} title
 * @param {Content} c
 */
export function openDialog(title, c) {
  const dialog = /** @type {HTMLDialogElement} */ (byID('dialog'));
  const problem = h('p.problem', { role: 'alert', hidden: true });
  const go = /** @type {HTMLButtonElement} */ (h(c.danger ? 'button.danger' : 'button.primary', { type: 'submit' }, c.confirm));
  const ready = () => { go.disabled = c.ready ? !c.ready() : false; };
  const form = h('form', {
    method: 'dialog',
    oninput: ready,
    onsubmit: async (/** @type {Event} */ e) => {
      e.preventDefault();
      go.disabled = true;
      problem.hidden = true;
      try {
        await c.submit();
        dialog.close();
      } catch (err) {
        problem.textContent = err instanceof Error ? err.message : String(err);
        problem.hidden = false;
        ready();
      }
    },
  }, h('h2', { id: 'dialog-title' }, title), ...c.body, problem,
  h('div.buttons', {}, h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'), go));
  dialog.className = c.danger ? 'danger' : '';
  dialog.replaceChildren(form);
  ready();
  if (!dialog.open) dialog.showModal();
  form.querySelector('input')?.focus();
}
