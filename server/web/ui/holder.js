// @ts-check
// Who holds a name: what it calls itself, and behind that, softer, what tells it from others that do.
import { h, setText } from './dom.js';

/** Holder is the elements of a holder's id. */
export class Holder {
  /** @param {HTMLElement} el */
  constructor(el) {
    this.el = el;
    this.called = h('span');
    this.rest = h('span.soft');
    el.append(this.called, this.rest);
  }

  /**
   * @param {string} id
   * @param {string} nobody what to say when nobody does
   */
  show(id, nobody) {
    const at = id.lastIndexOf('/'), cut = at > 0 ? at : id.length;
    setText(this.called, id.slice(0, cut) || (nobody ? '' : '–'));
    setText(this.rest, id ? id.slice(cut) : nobody);
    this.el.title = id || nobody;
  }
}
