// @ts-check
// Lines for a shell.
import { h, setText } from './dom.js';

/**
 * quote writes a word for a shell.
 * @param {string} word
 */
export function quote(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/**
 * leasehold is a call of the command, at this server. A flag whose value is empty is left out.
 * @param {string} verb
 * @param {string} name
 * @param {Record<string, string>} [flags]
 */
export function leasehold(verb, name, flags = {}) {
  const rest = Object.entries({ ...flags, store: location.origin }).filter(([, value]) => value !== '')
    .map(([key, value]) => `--${key} ${quote(value)}`).join(' ');
  return name.startsWith('-') ? `leasehold ${verb} ${rest} -- ${quote(name)}` : `leasehold ${verb} ${quote(name)} ${rest}`;
}

/**
 * command is a line for a shell, with a button that copies it.
 * @param {string} text
 */
export function command(text) {
  const code = h('code');
  const done = (/** @type {string} */ word) => {
    setText(button, word);
    button.removeAttribute('aria-label');
  };
  const button = h('button', {
    type: 'button',
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(code.textContent || '');
        done('Copied');
      } catch { // not over plain HTTP from another machine
        getSelection()?.selectAllChildren(code);
        done('Selected');
      }
    },
  }, 'Copy');
  const label = (/** @type {string} */ line) => {
    setText(code, line);
    setText(button, 'Copy');
    button.setAttribute('aria-label', `Copy ${line}`);
  };
  label(text);
  return { el: h('p.command', {}, code, button), set: label };
}
