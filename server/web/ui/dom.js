// @ts-check
// Elements, and how durations are written.

/**
 * h makes an element: h('a.wide', {href: '#/'}, 'text', child). A property that begins with "on" is a listener; one that is false
 * or null is left out.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Node|string|null|undefined)} children
 * @returns {HTMLElement}
 */
export function h(tag, props = {}, ...children) {
  const [name, ...classes] = tag.split('.');
  const el = document.createElement(name);
  if (classes.length > 0) el.className = classes.join(' ');
  return fill(el, props, children);
}

/**
 * s makes an element of SVG, as h makes one of HTML.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Node|string|null|undefined)} children
 * @returns {SVGElement}
 */
export function s(tag, props = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), props, children);
}

/**
 * @template {Element} E
 * @param {E} el
 * @param {Record<string, any>} props
 * @param {(Node|string|null|undefined)[]} children
 * @returns {E}
 */
function fill(el, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith('on')) el.addEventListener(key.slice(2), value);
    else el.setAttribute(key, value === true ? '' : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined) el.append(child);
  return el;
}

/**
 * byID returns an element of the page that is there.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byID(id) {
  const el = document.getElementById(id);
  if (!el) throw new Error(`the page has no #${id}`);
  return el;
}

/**
 * inputByID returns an input of the page.
 * @param {string} id
 */
export function inputByID(id) {
  return /** @type {HTMLInputElement} */ (byID(id));
}

/**
 * setText changes the text of an element if it is another one.
 * @param {Node} el
 * @param {string} text
 */
export function setText(el, text) {
  if (el.textContent !== text) el.textContent = text;
}

/**
 * duration writes milliseconds for people: "4.2 s", "3 min 12 s", "2 d 4 h".
 * @param {number} ms
 */
export function duration(ms) {
  const sec = Math.max(ms, 0) / 1000;
  if (sec < 9.95) return `${sec.toFixed(1)} s`;
  const whole = Math.round(sec);
  const units = /** @type {[number, string][]} */ ([[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']]);
  const i = units.findIndex(([size]) => whole >= size);
  const [size, unit] = units[i];
  const first = `${Math.floor(whole / size)} ${unit}`;
  if (i === units.length - 1) return first;
  const [below, belowUnit] = units[i + 1];
  const rest = Math.floor((whole % size) / below);
  return rest > 0 ? `${first} ${rest} ${belowUnit}` : first;
}

/**
 * moment writes a time of day for people and for searching logs: "2026-11-21 18:29:05 UTC".
 * @param {string} time
 */
export function moment(time) {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? time : `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
