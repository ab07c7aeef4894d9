// The search looks in an index that is a script, because a page from a disk may read no other file.
'use strict';

const up = document.currentScript.dataset.up;
const input = document.getElementById('search');
const found = document.getElementById('found');
let loading;

function load() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = `${up}search-index.js`;
    script.onload = () => resolve(globalThis.leaseholdIndex.map((s) => ({
      ...s, page: s.p.toLowerCase(), heading: s.h.toLowerCase(), text: s.t.toLowerCase(),
    })));
    script.onerror = () => reject(new Error('the index of the search is missing'));
    document.head.append(script);
  });
  return loading;
}

// Every word has to be in the section. A title counts for more than a heading, and that for more than text.
function score(s, words) {
  let sum = 0;
  for (const word of words) {
    const times = s.text.split(word, 6).length - 1;
    const here = (s.page.includes(word) ? (s.h ? 4 : 12) : 0) + (s.heading.includes(word) ? 10 : 0) + times;
    if (here === 0) return 0;
    sum += here;
  }
  return sum;
}

function marked(text, words) {
  const out = document.createElement('span');
  let at = 0;
  const lower = text.toLowerCase();
  while (at < text.length) {
    let next = text.length;
    let length = 0;
    for (const word of words) {
      const i = lower.indexOf(word, at);
      if (i >= 0 && i < next) [next, length] = [i, word.length];
    }
    out.append(text.slice(at, next));
    if (length > 0) {
      const mark = document.createElement('mark');
      mark.textContent = text.slice(next, next + length);
      out.append(mark);
    }
    at = next + length;
  }
  return out;
}

function entry(s, words) {
  const first = Math.min(...words.map((word) => s.text.indexOf(word)).filter((i) => i >= 0));
  const from = Number.isFinite(first) ? Math.max(0, s.t.lastIndexOf(' ', Math.max(0, first - 40))) : 0;
  const a = document.createElement('a');
  a.href = up + s.a;
  const title = document.createElement('b');
  title.textContent = s.h ? `${s.p} › ${s.h}` : s.p;
  a.append(title, marked((from > 0 ? '… ' : '') + s.t.slice(from, from + 160), words));
  const li = document.createElement('li');
  li.append(a);
  return li;
}

async function search() {
  const query = input.value;
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) {
    found.hidden = true;
    return;
  }
  const index = await load();
  if (query !== input.value) return; // typed on meanwhile
  const best = index.map((s) => [score(s, words), s]).filter(([n]) => n > 0).sort(([a], [b]) => b - a).slice(0, 12);
  found.replaceChildren(...best.map(([, s]) => entry(s, words)));
  if (best.length === 0) {
    const none = document.createElement('li');
    none.className = 'none';
    none.textContent = 'Nothing has all of these words.';
    found.append(none);
  }
  found.hidden = false;
}

input.addEventListener('input', search);
input.addEventListener('focus', load, { once: true });
input.form.addEventListener('submit', (event) => {
  event.preventDefault();
  found.querySelector('a')?.click();
});
document.addEventListener('click', (event) => {
  if (!input.form.contains(event.target)) found.hidden = true;
});
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && !event.ctrlKey && !event.metaKey && document.activeElement !== input) {
    event.preventDefault();
    input.focus();
  } else if (event.key === 'Escape') {
    found.hidden = true;
    input.blur();
  } else if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && !found.hidden && input.form.contains(document.activeElement)) {
    const all = [input, ...found.querySelectorAll('a')];
    const next = all[all.indexOf(document.activeElement) + (event.key === 'ArrowDown' ? 1 : -1)];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  }
});

// Light and dark follow the system, until the reader says otherwise.
function scheme(value) {
  if (value) document.documentElement.style.colorScheme = value;
}
function kept() {
  try {
    return localStorage.getItem('scheme');
  } catch {
    return null; // a browser may keep nothing for pages from a disk
  }
}
scheme(kept());
document.getElementById('scheme').addEventListener('click', () => {
  const now = document.documentElement.style.colorScheme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  const next = now === 'dark' ? 'light' : 'dark';
  scheme(next);
  try {
    localStorage.setItem('scheme', next);
  } catch {
    // it is forgotten with the page
  }
});

// The list of pages is closed on a phone, and open where there is room beside the page.
const narrow = matchMedia('(max-width: 50rem)');
const menu = document.getElementById('menu');
const fit = () => { menu.open = !narrow.matches; };
narrow.addEventListener('change', fit);
fit();
document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest' });
