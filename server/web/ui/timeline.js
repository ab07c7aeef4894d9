// @ts-check
// The state timeline: who held each name when, from the server's journal. A lane a name, or a holder.
import { ask, Problem } from './api.js';
import { h, inputByID, setText } from './dom.js';
import { groups, laneOf } from './groups.js';
import { detailPath } from './names.js';
import { openReport } from './report.js';
import { load, problem, windowOf } from './spans.js';

/**
 * @typedef {import('./spans.js').Span} Span
 * @typedef {import('./spans.js').Lane} Lane
 */

/** The lengths that can be picked, in ms. */
const lengths = [{ text: '15 min', ms: 900_000 }, { text: '1 h', ms: 3_600_000 }, { text: '6 h', ms: 21_600_000 }, { text: '24 h', ms: 86_400_000 }, { text: '7 d', ms: 604_800_000 }];
const shortest = 10_000, longest = 31 * 86_400_000;
const again = 5_000; // a picture that ends now is drawn again so often, in ms
const mostLanes = 300;
const rowHeight = 22;

/** legend says what looks how. */
function legend() {
  const entry = (/** @type {string} */ look, /** @type {string} */ text) => h('span', {}, h(`i.${look}`, { 'aria-hidden': 'true' }), text);
  return h('p.legend', {}, entry('free', 'nobody held it'), entry('lost', 'lost: expired or broken'), entry('waiting', 'requests wait'), entry('paused', 'paused'),
    entry('unknown', 'before the journal'));
}

/** Timeline is the view at #timeline. */
export class Timeline {
  /** @param {import('./model.js').Model} model */
  constructor(model) {
    this.model = model;
    this.root = h('section', { id: 'timeline', 'aria-label': 'Timeline' });
    this.length = 3_600_000;
    this.end = NaN; // NaN follows the present
    this.by = groups[0];
    /** @type {Span[]} */
    this.all = [];
    this.from = NaN; // from when on the journal is complete
    this.asked = -Infinity;
    this.width = 800; // of a lane, in pixels
    this.more = false; // than was read
    this.asking = 0; // of the latest question
    this.said = h('p.said-span', { id: 'span-said' }, 'Point at a term, or go from term to term with the arrow keys; + and − zoom, Shift with an arrow moves through time.');
    this.note = h('p.soft', { id: 'span-note', role: 'status' });
    this.ticks = h('div.ticks', { 'aria-hidden': 'true' });
    this.lanes = h('ol.lanes', { 'aria-label': 'Lanes' });
    this.bar = h('div.spanbar', { role: 'toolbar', 'aria-label': 'Time' });
    this.root.append(h('h2', {}, 'Timeline'), this.bar, this.said, this.note, h('div.plot', {}, this.ticks, this.lanes), legend());
    this.tools();
    this.lanes.addEventListener('keydown', (e) => this.key(e));
    for (const event of ['focusin', 'pointerover']) this.lanes.addEventListener(event, (e) => this.say(e.target));
    this.lanes.addEventListener('wheel', (e) => this.wheel(e), { passive: false });
    this.lanes.addEventListener('pointerdown', (e) => this.drag(e));
    inputByID('prefix').addEventListener('input', () => { this.asked = -Infinity; });
  }

  get visible() {
    return this.root.isConnected;
  }

  /** The server's time of day. */
  get now() {
    return Number.isNaN(this.model.wall) ? Date.now() : this.model.wall + performance.now();
  }

  get until() {
    return Number.isNaN(this.end) ? this.now : this.end;
  }

  /** tools are the buttons, for whom keys and wheels are nothing. */
  tools() {
    const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ onclick) => h('button', { type: 'button', 'aria-label': label, title: label, onclick }, text);
    this.pressed = new Map(lengths.map(({ text, ms }) => [ms, h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => this.to(this.end, ms) }, text)]));
    this.live = h('button', { type: 'button', 'aria-pressed': 'true', onclick: () => this.to(NaN, this.length) }, 'Now');
    this.select = /** @type {HTMLSelectElement} */ (h('select', { id: 'lanes-by', onchange: () => {
      this.by = groups.find((g) => g.id === this.select?.value) || groups[0];
      this.to(this.end, this.length);
    } }, ...groups.map((g) => h('option', { value: g.id }, g.text))));
    this.bar.append(button('◀', 'Earlier', () => this.pan(-0.5)), button('▶', 'Later', () => this.pan(0.5)), this.live,
      button('−', 'Longer', () => this.zoom(2, 0.5)), button('+', 'Shorter', () => this.zoom(0.5, 0.5)), ...this.pressed.values(),
      h('button', { type: 'button', onclick: () => void openReport(ask, this.until - this.length, this.until, inputByID('prefix').value.trim()) }, 'Report…'),
      h('label', {}, 'Lanes by ', this.select));
  }

  /**
   * open shows the view as an address says.
   * @param {string} hash
   */
  open(hash) {
    const q = new URLSearchParams(hash.split('?')[1] || '');
    const end = Date.parse(q.get('until') || ''), length = Number(q.get('for')) * 1000;
    this.by = groups.find((g) => g.id === q.get('by')) || groups[0];
    if (this.select) this.select.value = this.by.id;
    this.end = end;
    this.length = length >= shortest && length <= longest ? length : 3_600_000;
    this.asked = -Infinity;
    this.render();
  }

  /**
   * to looks at another time. The address says which, to send to others.
   * @param {number} end NaN for the present
   * @param {number} length
   */
  to(end, length) {
    this.length = Math.min(Math.max(length, shortest), longest);
    this.end = end >= this.now ? NaN : end;
    const until = Number.isNaN(this.end) ? '' : `until=${new Date(this.end).toISOString()}&`;
    const by = this.by === groups[0] ? '' : `&by=${this.by.id}`;
    history.replaceState(null, '', `${location.pathname}${location.search}#timeline?${until}for=${Math.round(this.length / 1000)}${by}`);
    this.asked = -Infinity;
    this.draw();
    this.render();
  }

  /** @param {number} share of the length */
  pan(share) {
    this.to(this.until + share * this.length, this.length);
  }

  /**
   * zoom makes the length another one; the time at a place stays there.
   * @param {number} by
   * @param {number} at the place: 0 is left, 1 right
   */
  zoom(by, at) {
    const length = Math.min(Math.max(this.length * by, shortest), longest);
    const fixed = this.until - this.length * (1 - at);
    this.to(Number.isNaN(this.end) && by < 1 && at > 0.9 ? NaN : fixed + length * (1 - at), length);
  }

  /** render asks for what is to be drawn, if that is old. */
  render() {
    if (!this.visible) return;
    const now = performance.now();
    const stands = !Number.isNaN(this.end);
    if (now - this.asked < (stands ? Infinity : again)) return;
    this.asked = now;
    void this.fetch();
  }

  async fetch() {
    const question = ++this.asking;
    const until = this.until, since = until - this.length;
    try {
      const { spans, from, more } = await load(ask, since, until, inputByID('prefix').value.trim());
      if (question !== this.asking) return;
      this.all = spans;
      this.from = from;
      this.more = more;
      this.draw();
    } catch (err) {
      if (question !== this.asking) return;
      if (err instanceof Problem && err.code === 'no_journal') {
        this.all = [];
        this.asked = Infinity;
        this.draw();
      }
      setText(this.note, problem(err)); // what was drawn stays
    }
  }

  /** draw shows what is known of the time that is looked at. */
  draw() {
    const until = this.until, since = until - this.length, now = this.now;
    for (const [ms, button] of this.pressed || []) button.setAttribute('aria-pressed', String(ms === this.length));
    this.live?.setAttribute('aria-pressed', String(Number.isNaN(this.end)));
    const at = document.activeElement instanceof HTMLElement ? document.activeElement.dataset.id : undefined;
    const { by } = this, lanes = laneOf(this.all, by, this.model);
    if (this.asking > 0) {
      setText(this.note, this.more ? 'There is more than is shown: the latest is. Fill in a prefix, or shorten the time.'
        : this.all.length === 0 ? 'Nothing is known of this time.' : lanes.length === 0 ? by.none || '' : '');
    }
    const list = document.createDocumentFragment();
    this.width = Math.max(this.ticks.clientWidth, 200);
    let group = '';
    for (const lane of lanes.slice(0, mostLanes)) {
      if (lane.group !== group) {
        const text = by.title ? by.title(lane.group) : lane.group;
        list.append(h('li.group', { title: text === lane.group ? null : lane.group }, by.href ? h('a', { href: by.href(lane.group) }, text) : text));
      }
      group = lane.group;
      list.append(this.lane(lane, since, until, now));
    }
    if (lanes.length > mostLanes) list.append(h('li.group', {}, `and ${(lanes.length - mostLanes).toLocaleString('en')} more: fill in a prefix`));
    this.lanes.replaceChildren(list);
    this.ticks.replaceChildren(...windowOf(since, until).map(({ left, text }) => {
      const mark = h('span', {}, text);
      mark.style.left = `${left}%`; // the policy of the page lets no attribute do it
      return mark;
    }));
    const all = this.terms();
    const focus = all.find((el) => el.dataset.id === at);
    (focus || all[0])?.setAttribute('tabindex', '0');
    focus?.focus({ preventScroll: true });
  }

  /**
   * @param {Lane} lane
   * @param {number} since
   * @param {number} until
   * @param {number} now
   */
  lane(lane, since, until, now) {
    const track = h('div.track');
    const place = (/** @type {HTMLElement} */ el, /** @type {number} */ from, /** @type {number} */ to) => {
      const left = Math.max((from - since) / (until - since), 0), right = Math.min((to - since) / (until - since), 1);
      if (right < 0 || left > 1 || right < left) return;
      el.style.left = `${left * 100}%`;
      el.style.width = `${(right - left) * 100}%`;
      track.append(el);
    };
    if (this.from > since) place(h('i.unknown', { title: 'The journal has nothing of this time' }), since, Math.min(this.from, until));
    const pieces = lane.pieces(since, until, now, this.width), rows = 1 + Math.max(0, ...pieces.map((p) => p.row));
    for (const one of pieces) {
      const el = one.terms > 0 ? h('button', { type: 'button', tabindex: '-1', 'aria-label': one.text, 'data-id': one.id }, (one.to - one.from) / (until - since) * this.width > 28 ? one.label : '') : h('i', {});
      el.className = one.look;
      if (one.row > 0) el.style.top = `${one.row * rowHeight + 2}px`;
      place(el, one.from, one.to);
    }
    const name = this.by.holders ? h('span', {}, lane.short) : h('a', { href: detailPath(lane.name) }, lane.short);
    const el = h('li.lane', {}, h('span.lane-name', { title: lane.name }, name), track);
    if (rows > 1) {
      track.style.height = `${rows * rowHeight}px`;
      el.style.height = 'auto';
    }
    return el;
  }

  terms() {
    return /** @type {HTMLElement[]} */ ([...this.lanes.querySelectorAll('button')]);
  }

  /** @param {EventTarget|null} el */
  say(el) {
    if (el instanceof HTMLElement && el.dataset.id) setText(this.said, el.getAttribute('aria-label') || '');
  }

  /**
   * key moves from term to term and from lane to lane; with Shift, through time.
   * @param {KeyboardEvent} e
   */
  key(e) {
    const el = e.target;
    if (!(el instanceof HTMLElement) || !el.dataset.id || e.ctrlKey || e.metaKey || e.altKey) return;
    const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key], rise = { ArrowUp: -1, ArrowDown: 1 }[e.key];
    if (step && e.shiftKey) this.pan(step / 4);
    else if (e.key === '+' || e.key === '=') this.zoom(0.5, this.middle(el));
    else if (e.key === '-') this.zoom(2, this.middle(el));
    else if (step) this.move(el, el.parentElement, step);
    else if (rise) this.move(el, this.neighbour(el, rise), 0);
    else return;
    e.preventDefault();
  }

  /** @param {HTMLElement} el */
  middle(el) {
    return Math.min(Math.max((parseFloat(el.style.left) + parseFloat(el.style.width) / 2) / 100, 0), 1);
  }

  /**
   * @param {HTMLElement} el
   * @param {number} rise
   */
  neighbour(el, rise) {
    const tracks = [...this.lanes.querySelectorAll('.track')].filter((t) => t.querySelector('button'));
    return tracks[tracks.indexOf(/** @type {Element} */ (el.parentElement)) + rise] || null;
  }

  /**
   * @param {HTMLElement} el
   * @param {Element|null} track
   * @param {number} step 0 goes to the term that is nearest in time
   */
  move(el, track, step) {
    if (!track) return;
    const all = /** @type {HTMLElement[]} */ ([...track.querySelectorAll('button')]);
    const far = (/** @type {HTMLElement} */ o) => Math.abs(this.middle(o) - this.middle(el));
    const next = step === 0 ? all.toSorted((a, b) => far(a) - far(b))[0] : all[all.indexOf(el) + step];
    if (!next) return;
    el.setAttribute('tabindex', '-1');
    next.setAttribute('tabindex', '0');
    next.focus();
  }

  /**
   * wheel zooms with Ctrl, where maps do, and pans when it is turned sideways.
   * @param {WheelEvent} e
   */
  wheel(e) {
    const track = e.target instanceof Element ? e.target.closest('.track') : null;
    if (!track || !(e.ctrlKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))) return;
    e.preventDefault();
    const box = track.getBoundingClientRect();
    if (e.ctrlKey) this.zoom(e.deltaY > 0 ? 1.25 : 0.8, (e.clientX - box.left) / box.width);
    else this.pan(e.deltaX / box.width);
  }

  /**
   * drag scrubs through time.
   * @param {PointerEvent} e
   */
  drag(e) {
    const track = e.target instanceof Element ? e.target.closest('.track') : null;
    if (!track || e.button !== 0 || e.pointerType === 'touch') return;
    const { width } = track.getBoundingClientRect(), x = e.clientX, from = this.until;
    const stop = new AbortController();
    addEventListener('pointermove', (m) => {
      if (Math.abs(m.clientX - x) > 3) this.to(from - ((m.clientX - x) / width) * this.length, this.length);
    }, { signal: stop.signal });
    for (const end of ['pointerup', 'pointercancel', 'blur']) addEventListener(end, () => stop.abort(), { signal: stop.signal });
  }
}
