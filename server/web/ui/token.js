// @ts-check
// Fencing tokens: of 13 digits the last six tell terms apart; the whole one is there on hover, and copied.
import { h, setText } from './dom.js';

const shown = 6;

/** @param {number|undefined} token */
export function short(token) {
  const text = token ? String(token) : '–';
  return text.length > shown ? `…${text.slice(-shown)}` : text;
}

/**
 * digits shows a token short within text: selected, under the pointer and read out it is whole.
 * @param {number} token
 */
export function digits(token) {
  const text = String(token), cut = Math.max(text.length - shown, 0);
  return h('span.digits', { title: text }, cut > 0 ? h('i', {}, text.slice(0, cut)) : null, text.slice(cut));
}

/** Token is a token that is copied when it is pressed. */
export class Token {
  /** @param {boolean} [inRow]  of a table whose rows are gone through by arrows: Tab doesn't stop there */
  constructor(inRow = false) {
    this.token = 0;
    this.el = h('button.copies', { type: 'button', tabindex: inRow ? '-1' : null, onclick: () => this.copy() });
  }

  /** @param {number|undefined} token */
  show(token) {
    if (this.token === (token || 0) && this.el.textContent) return;
    this.token = token || 0;
    setText(this.el, short(token));
    this.el.toggleAttribute('disabled', !token);
    this.el.title = token ? `${token}: press to copy` : '';
    if (token) this.el.setAttribute('aria-label', `Token ${token}: copy`);
    else this.el.removeAttribute('aria-label');
  }

  async copy() {
    const { token } = this;
    try {
      await navigator.clipboard.writeText(String(token));
      setText(this.el, 'copied');
    } catch { // not over plain HTTP from another machine
      setText(this.el, String(token));
      getSelection()?.selectAllChildren(this.el);
    }
    setTimeout(() => {
      this.token = -1;
      this.show(token);
    }, 2000);
  }
}
