// @ts-check
// The page's one dialog: it has the focus while it is open, Escape closes it, and the focus goes back to where it was.
import { command } from './command.js';
import { byID, h } from './dom.js';

/**
 * @typedef {object} Content
 * @property {(Node|null)[]} body
 * @property {string} confirm         the word on the button
 * @property {string} [kind]          how it looks: "danger", "handoff" or "pause"
 * @property {() => boolean} [ready]  whether it may be confirmed; asked at each input
 * @property {() => string} [command] that does the same, as it is filled in
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
  const go = /** @type {HTMLButtonElement} */ (h(`button.${c.kind || 'primary'}`, { type: 'submit' }, c.confirm));
  const line = c.command ? command(c.command()) : null;
  let busy = false;
  const ready = () => {
    go.disabled = busy || (c.ready ? !c.ready() : false);
    if (line && c.command) line.set(c.command());
  };
  const form = h('form', {
    method: 'dialog',
    oninput: ready,
    onsubmit: async (/** @type {Event} */ e) => {
      e.preventDefault();
      if (go.disabled) return;
      busy = true;
      problem.hidden = true;
      ready();
      try {
        await c.submit();
        if (form.isConnected) dialog.close();
      } catch (err) {
        problem.textContent = err instanceof Error ? err.message : String(err);
        problem.hidden = false;
      } finally {
        busy = false;
        ready();
      }
    },
  }, h('h2', { id: 'dialog-title' }, title), ...c.body,
  line ? h('div.same', {}, h('p', {}, 'The same by command'), line.el) : null,
  h('div.buttons', {}, problem, h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'), go));
  dialog.className = c.kind || '';
  dialog.replaceChildren(form);
  ready();
  if (!dialog.open) dialog.showModal();
  /** @type {HTMLElement|null} */ (form.querySelector('input:checked, input:not([type=radio])'))?.focus();
}
