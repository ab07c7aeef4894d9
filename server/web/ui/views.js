// @ts-check
// The views of the page, and which of them the address shows.
//
// A view is a module that registers itself when it is imported:
//
//   import { register } from './views.js';
//
//   register({
//     id: 'pair', title: 'Pair', order: 70,
//     mount(el, ctx, place) {
//       el.append(h('h2', {}, 'The pair'), …);
//       return {
//         update(next) { … },   // the address has changed, and is still this view's
//         render(now) { … },    // four times a second; now is performance.now()
//         unmount() { … },      // another view is shown: end timers and requests
//       };
//     },
//   });
//
// app.js registers it, or, so that the first rows don't wait for it, registers in its place what loads it:
//
//   register({ id: 'shards', title: 'Shards', order: 65, mount: late(() => import('./shards.js'), (m) => m.view.mount) });
//
// The address of a view is #ID, #ID/REST or #ID?KEY=VALUE, and a view reads it as place = {id, rest, params}: rest is what is behind the
// slash, decoded; params are URLSearchParams. ctx.set({sort: 'name'}) changes params, so that the back button comes back to what was
// before; ctx.set({q: 'x'}, true) takes the place of the present address, as while somebody types. "#/" is the names, "#/NAME" one of them.
//
// ctx.model is what the stream has told (model.js): names and sessions. ctx.ask(path) asks the server; an error of it has been
// refused by the server (a Problem), or the server can't be reached. ctx.wall() is the server's time of day in ms. ctx.prefix() is
// the prefix that the page is about; it is the same for all views.

import { h, setText } from './dom.js';

/**
 * @typedef {object} Place
 * @property {string} id
 * @property {string} rest
 * @property {URLSearchParams} params
 *
 * @typedef {object} Mounted
 * @property {(place: Place) => void} [update]
 * @property {(now: number) => void} [render]
 * @property {() => void} [unmount]
 *
 * @typedef {object} Context
 * @property {import('./model.js').Model} model
 * @property {(path: string, init?: RequestInit) => Promise<Response>} ask
 * @property {() => number} wall
 * @property {() => string} prefix
 * @property {() => string} cut  why there is no stream; '' while there is one
 * @property {(params: Record<string, string>, replace?: boolean) => void} set
 *
 * @typedef {object} View
 * @property {string} id
 * @property {string} title       in the navigation, and of the tab; a view without one is not in it
 * @property {number} [order]     in the navigation
 * @property {string} [href]      if it isn't #ID
 * @property {() => boolean} [offered]  whether it is in the navigation; asked now and then
 * @property {(el: HTMLElement, ctx: Context, place: Place) => Mounted} mount
 */

/** @type {View[]} */
const all = [];

/** @param {View} view */
export function register(view) {
  all.push(view);
  all.sort((a, b) => (a.order || 0) - (b.order || 0));
}

/** views returns those of the navigation, in order. */
export function views() {
  return all.filter((v) => v.title && (!v.offered || v.offered()));
}

/** @param {View} view */
export function hrefOf(view) {
  return view.href || `#${view.id}`;
}

/**
 * parse reads an address.
 * @param {string} hash
 * @returns {Place}
 */
export function parse(hash) {
  const text = hash.replace(/^#/, '');
  const mark = text.indexOf('?'), path = mark < 0 ? text : text.slice(0, mark);
  const params = new URLSearchParams(mark < 0 ? '' : text.slice(mark + 1));
  const slash = path.indexOf('/');
  if (path === '') return { id: 'overview', rest: '', params };
  if (slash === 0) return path === '/' ? { id: 'names', rest: '', params } : { id: 'name', rest: decoded(path.slice(1)), params };
  return { id: slash < 0 ? path : path.slice(0, slash), rest: slash < 0 ? '' : decoded(path.slice(slash + 1)), params };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * format writes an address.
 * @param {Place} place
 */
export function format({ id, rest, params }) {
  const path = id === 'names' ? '/' : id === 'name' ? `/${encodeURIComponent(rest)}` : rest ? `${id}/${encodeURIComponent(rest)}` : id;
  return `#${path}${params.size > 0 ? `?${params}` : ''}`;
}

/**
 * late mounts a view once its module has been loaded, if it is still the one to be shown. What could not be loaded is loaded again when
 * the server is back: to load the page again before that would lose what was last known.
 * @template M
 * @param {() => Promise<M>} load
 * @param {(m: M) => View['mount']} mount
 * @returns {View['mount']}
 */
export function late(load, mount) {
  return (el, ctx, place) => {
    /** @type {Mounted|null} */
    let inner = null;
    /** @type {HTMLElement|null} */
    let problem = null;
    let over = false, away = false, at = place;
    const explain = () => {
      const why = ctx.cut();
      away ||= why !== '';
      if (problem) setText(problem, why ? `This part of the page had not been loaded yet: ${why}. It is loaded when the server is back.` : 'This part of the page could not be loaded. Load the page again: the server may have another version by now.');
    };
    const attempt = () => load().then((m) => {
      if (over) return;
      el.replaceChildren();
      inner = mount(m)(el, ctx, at);
    }, () => {
      if (over) return;
      el.replaceChildren(problem = h('p.problem', { role: 'alert' }));
      explain();
    });
    void attempt();
    return {
      update(next) {
        at = next;
        inner?.update?.(next);
      },
      render(now) {
        inner?.render?.(now);
        if (!problem) return;
        if (away && !ctx.cut()) {
          away = false;
          problem = null;
          void attempt();
        } else {
          explain();
        }
      },
      unmount() {
        over = true;
        inner?.unmount?.();
      },
    };
  };
}

/** Router shows the view that the address says. */
export class Router {
  /**
   * @param {HTMLElement} root
   * @param {Omit<Context, 'set'>} ctx
   */
  constructor(root, ctx) {
    this.root = root;
    this.ctx = { ...ctx, set: (/** @type {Record<string, string>} */ params, replace = false) => this.set(params, replace) };
    this.place = /** @type {Place} */ ({ id: '', rest: '', params: new URLSearchParams() });
    /** @type {View|null} */
    this.view = null;
    /** @type {Mounted} */
    this.mounted = {};
  }

  /** route shows what the address says, and reports whether another view is shown than before. */
  route() {
    const place = parse(location.hash);
    const view = all.find((v) => v.id === place.id) || all.find((v) => v.id === 'overview') || all[0];
    this.place = place;
    if (view === this.view) {
      this.mounted.update?.(place);
      return false;
    }
    this.mounted.unmount?.();
    this.view = view;
    this.root.replaceChildren();
    this.root.dataset.view = view.id;
    this.mounted = view.mount(this.root, this.ctx, place);
    return true;
  }

  /**
   * set changes parameters of the address; an empty one goes.
   * @param {Record<string, string>} params
   * @param {boolean} replace
   */
  set(params, replace) {
    const { place } = this;
    for (const [key, value] of Object.entries(params)) {
      if (value) place.params.set(key, value);
      else place.params.delete(key);
    }
    history[replace ? 'replaceState' : 'pushState'](null, '', location.pathname + location.search + format(place));
    this.mounted.update?.(place);
  }

  /** @param {number} now */
  render(now) {
    this.mounted.render?.(now);
  }
}
