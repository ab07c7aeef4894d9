// @ts-check
// Wires the page: the stream to the model, the model to the board or to one name's detail.
import { ask, hasToken } from './api.js';
import { byID, duration, h, inputByID, setText } from './dom.js';
import { Feed } from './feed.js';
import { Home } from './home.js';
import { Live } from './live.js';
import { alarming, Counter, Model } from './model.js';
import { Names } from './names.js';
import { Overview } from './overview.js';
import { letters, openKeys, openPalette } from './palette.js';
import { offered } from './pairoffer.js';
import { followLogin, forget, loginOf, settle, signIn, takeAnswer } from './signin.js';
import { Pulse } from './spark.js';
import { hrefOf, late, register, Router, views } from './views.js';

const answer = takeAnswer(); // of an issuer, before anything else looks at the address
const tick = 250;
const slept = 2_000; // by which the time of day may run ahead of the monotonic clock before the machine must have been asleep

const model = new Model();
const counter = new Counter(model);
const overview = new Overview(model, counter);
let waiting = 'Asking the server…'; // what there is to say while nothing is known
/** @type {import('./operator.js').Me|null} */
let me = null;
let journal = false; // the server keeps one
/** @type {import('./home.js').Known} */
const known = { pulse: new Pulse(ask), feed: new Feed(model), measures: () => me && me.may.includes('metrics'), journal: () => journal };
/** @type {import('./detail.js').Detail|null} */
let detail = null;
/** @type {import('./timeline.js').Timeline|null} */
let timeline = null;
let cut = ''; // why there is no stream
const strangers = 'nobody has signed in';

const live = new Live({
  opened(wall) {
    cut = '';
    if (lacking) warmed = false;
    model.opened(wall, performance.now());
    notice('');
  },
  message(m) {
    const known = model.loaded;
    model.take(m, performance.now());
    if (m.event === 'beat' && !warmed) setTimeout(warm, 200);
    if (!known && (m.event === 'beat' || model.rows.size === screenful)) soon();
  },
  cut(why) {
    cut = why;
    waiting = `Nothing is known yet: ${why}. The page tries again.`;
  },
  refused,
});

const screenful = 50; // rows, which are shown without waiting for the others

// soon shows what is known, sooner than it is shown anyway.
function soon() {
  requestAnimationFrame(() => {
    status();
    overview.render(router.view?.id === 'overview');
    router.render(performance.now());
  });
}

/**
 * refused says what may not be seen, or asks who is there.
 * @param {import('./api.js').Problem} err
 */
function refused(err) {
  byID('who').hidden = false;
  model.forget();
  if (err.status === 401) {
    cut = strangers;
    waiting = 'Sign in to see who holds what.';
    askWho(hasToken() ? forget(err.message) : '');
  } else {
    cut = 'not allowed';
    waiting = 'You may not see this.';
    notice(err.status === 403 ? `${err.message}. Fill in the prefix that you may read.` : err.message);
    if (err.status === 403) void offerPrefixes(err.message);
  }
  status();
  router.render(performance.now());
}

/**
 * notice says something above the view, with buttons behind it; '' says nothing any more.
 * @param {string} text
 * @param {HTMLElement[]} [buttons]
 */
function notice(text, buttons = []) {
  byID('notice').hidden = text === '';
  byID('notice').replaceChildren(text, ...buttons);
}

/**
 * offerPrefixes offers what may be read to somebody who may not read all. If that is one prefix, it is taken.
 * @param {string} message
 */
async function offerPrefixes(message) {
  const who = await ask('/v1/whoami').then((r) => r.json(), () => null);
  if (!who?.names || model.loaded) return;
  /** @type {string[]} */
  const prefixes = (who.names.read || []).filter((/** @type {string} */ n) => n.endsWith('*')).map((/** @type {string} */ n) => n.slice(0, -1));
  const take = (/** @type {string} */ prefix) => {
    inputByID('prefix').value = prefix;
    remember();
    restart();
  };
  if (prefixes.length === 1 && inputByID('prefix').value === '') take(prefixes[0]);
  else if (prefixes.length > 0) notice(`${message}. You may read`, prefixes.map((p) => h('button', { type: 'button', onclick: () => take(p) }, p)));
  else notice(`${message}. The policy lets ${who.caller || 'a caller who has not signed in'} read no prefix.`);
}

/** @param {string} why */
function askWho(why) {
  signIn(why, () => {
    model.forget();
    start();
  });
}

function start() {
  waiting = 'Asking the server…';
  live.start(inputByID('prefix').value.trim());
  void describe();
  void followLogin(notice);
}

// enter finishes a login that an issuer has answered, and looks at the names as whom that makes us.
async function enter() {
  if (answer) waiting = 'Logging in…';
  const why = await settle(answer);
  if (why) askWho(why);
  start();
}

// describe says which store is behind the server, and whom it takes us for; it is only told, so that nothing depends on it.
async function describe() {
  try {
    const [store, who] = await Promise.all(['/v1/store', '/v1/whoami'].map(async (path) => (await ask(path)).json()));
    me = who;
    journal = Boolean(store.journal);
    setText(byID('engine'), `${store.engine}, ${location.host}${who.caller ? `, as ${who.caller}` : ''}`);
    byID('engine').title = byID('engine').textContent || '';
    byID('who').hidden = !hasToken() && (who.caller !== '' || who.may.length > 0); // known by a certificate, or anybody may do anything
    setText(byID('who'), hasToken() ? 'Sign in as another' : 'Sign in');
  } catch {
    setText(byID('engine'), location.host);
  }
}

/**
 * mayOn reports whether the policy lets us do something to a name, as far as is known.
 * @param {string} action
 * @param {string} name
 */
function mayOn(action, name) {
  if (!me?.names) return Boolean(me?.may.includes(action));
  return (me.names[action] || []).some((n) => n === name || (n.endsWith('*') && name.startsWith(n.slice(0, -1))));
}

/** The views that the page itself has. What is waited for is said in each of them. */
const why = () => waiting;
register({ id: 'overview', title: 'Overview', order: 10, mount: (el, ctx) => new Home(el, ctx, counter, known, why) });
register({
  id: 'names', title: 'Names', order: 20, href: '#/',
  mount(el, ctx, place) {
    const names = new Names(el, ctx, counter, why, place);
    if (left) names.grid.focusKey(left);
    left = '';
    return names;
  },
});
const lists = () => import('./lists.js'), poolsOf = () => import('./pools.js'), shards = () => import('./shards.js');
register({ id: 'holders', title: 'Holders', order: 30, mount: late(lists, (m) => (el, ctx, place) => m.holders(el, ctx, counter, why, place, mayOn)) });
register({ id: 'sessions', title: 'Sessions', order: 40, mount: late(lists, (m) => (el, ctx, place) => m.sessions(el, ctx, counter, why, place)) });
register({ id: 'elections', title: 'Elections', order: 50, mount: late(lists, (m) => (el, ctx, place) => m.elections(el, ctx, counter, why, place)) });
register({ id: 'locks', title: 'Locks', order: 55, mount: late(lists, (m) => (el, ctx, place) => m.locks(el, ctx, counter, why, place)) });
register({ id: 'pools', title: 'Pools', order: 60, mount: late(poolsOf, (m) => (el, ctx, place) => m.pools(el, ctx, counter, why, place)) });
register({ id: 'shards', title: 'Shards', order: 65, mount: late(shards, (m) => m.view.mount) });
const pair = () => import('./pair.js');
register({ id: 'pair', title: 'Standby', order: 70, offered, mount: late(pair, (m) => m.view.mount) });
const timelineOf = () => import('./timeline.js').then((m) => (timeline ||= new m.Timeline(model)));
const detailOf = () => import('./detail.js').then((m) => (detail ||= new m.Detail(model, (err) => refused(err))));
register({
  id: 'timeline', title: 'Timeline', order: 80,
  mount: late(timelineOf, (timeline) => (el) => {
    el.append(timeline.root);
    timeline.open(location.hash);
    return { update: () => timeline.open(location.hash), render: () => timeline.render() };
  }),
});
register({
  id: 'name', title: '',
  mount: late(detailOf, (detail) => (el, _ctx, place) => {
    el.append(detail.root);
    document.body.classList.add('one');
    const show = (/** @type {string} */ name) => {
      detail.open(name, cameFrom);
      scrollTo(0, 0);
    };
    show(place.rest);
    return {
      update: (next) => show(next.rest), render: () => detail.render(),
      unmount() {
        left = detail.close();
        document.body.classList.remove('one');
      },
    };
  }),
});

// warm loads what no view has needed yet: a server that has gone, or has another version, doesn't serve it any more.
let warmed = false;
let lacking = false; // something could not be loaded: it is tried again with the next stream
function warm() {
  if (warmed) return;
  warmed = true;
  void Promise.allSettled([lists(), poolsOf(), shards(), pair(), timelineOf(), detailOf(), loginOf()]).then((all) => {
    lacking = all.some((one) => one.status === 'rejected');
    document.body.dataset.parts = lacking ? 'some' : 'all';
  });
}
setTimeout(warm, 3_000);

let left = ''; // the name that was looked at last
let cameFrom = '#/'; // the view from which a name was opened

const router = new Router(byID('view'), {
  model, ask, cut: () => cut, prefix: () => inputByID('prefix').value.trim(), wall: () => (Number.isNaN(model.wall) ? Date.now() : model.wall + performance.now()),
});

function route() {
  const changed = router.route();
  if (router.view?.id !== 'name') {
    cameFrom = location.hash || '#overview';
    if (router.view?.id !== 'names') left = '';
  }
  if (changed && router.view?.id !== 'name') scrollTo(0, 0);
  overview.render(router.view?.id === 'overview');
  navigation();
}

function navigation() {
  const all = views(), nav = byID('nav');
  const key = `${all.map((v) => v.id)} ${router.view?.id}`;
  if (nav.dataset.key === key) return;
  nav.dataset.key = key;
  nav.replaceChildren(...all.map((v) => h('a', { href: hrefOf(v), 'aria-current': router.view === v ? 'page' : null }, v.title)));
}

function status() {
  const now = performance.now(), polled = detail?.fresh(now) || false, stale = polled ? 0 : model.staleFor(now);
  const why = model.error || cut;
  document.body.classList.toggle('stale', stale > 0);
  const el = byID('live');
  let state = 'live', text = 'Live';
  if (stale > 0) {
    state = 'stale';
    text = `Not current: ${duration(Math.floor(stale / 1000) * 1000)} old${cut ? `, ${cut}` : ''}`;
  } else if (cut === strangers) {
    state = 'connecting';
    text = 'Not signed in';
  } else if (polled && why) {
    state = 'polled';
    text = `Read every few seconds: not live, ${why}`;
  } else if (cut) {
    state = 'cut';
    text = `Not connected: ${cut}`;
  } else if (!model.loaded) {
    state = 'connecting';
    text = 'Connecting…';
  }
  el.dataset.state = state;
  setText(el, text);
  setText(byID('said'), said[state]); // not the age, which would be read out every second
  const n = stale > 0 ? 0 : alarming.reduce((sum, s) => sum + (counter.last.byState.get(s)?.length || 0), 0);
  const title = router.view?.id === 'name' ? router.place.rest : router.view?.title || '';
  document.title = `${n > 0 ? `${n}! ` : ''}${title} – Leasehold`;
}

/** @type {Record<string, string>} */
const said = { live: 'Live', stale: 'What is shown is not current', cut: 'Not connected', connecting: 'Connecting', polled: 'Not live' };

let mono = performance.now(), day = Date.now();

// After a sleep of this machine the monotonic clock tells too little: all that is known is forgotten, and asked for again.
function wakeUp() {
  const ahead = (Date.now() - day) - (performance.now() - mono);
  [mono, day] = [performance.now(), Date.now()];
  if (ahead > slept && model.loaded) {
    model.forget();
    detail?.forget();
    start();
  }
}

setInterval(() => {
  wakeUp();
  status();
  overview.render(router.view?.id === 'overview');
  router.render(performance.now());
}, tick);

// The prefix is a part of every address, to come back to and to send to others.
function remember() {
  const prefix = inputByID('prefix').value.trim();
  history.replaceState(null, '', (prefix ? `?${new URLSearchParams({ prefix })}` : location.pathname) + location.hash);
}

const asked = new URLSearchParams(location.search);
inputByID('prefix').value = asked.get('prefix') || '';
inputByID('prefix').addEventListener('input', remember);
if (asked.get('search')) location.hash = `#/?${new URLSearchParams({ q: asked.get('search') || '' })}`; // as addresses were once

let typing = 0;
inputByID('prefix').addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(restart, 400);
});

// restart forgets what is known of other prefixes.
function restart() {
  model.forget();
  known.feed.forget();
  start();
}

byID('who').addEventListener('click', () => askWho(''));
addEventListener('hashchange', route);
let awaiting = NaN; // until when the letter behind a g counts
addEventListener('keydown', (e) => {
  if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
    e.preventDefault();
    openPalette(model);
    return;
  }
  const typingNow = e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement || document.querySelector('dialog[open]');
  if (typingNow || e.ctrlKey || e.metaKey || e.altKey) return;
  const now = performance.now(), search = document.getElementById('search');
  if (now < awaiting && letters[e.key] && views().some((v) => v.id === letters[e.key])) {
    e.preventDefault();
    location.hash = hrefOf(/** @type {import('./views.js').View} */ (views().find((v) => v.id === letters[e.key])));
  } else if (e.key === '/' && search) {
    e.preventDefault();
    search.focus();
  } else if (e.key === '?') {
    openKeys();
  } else if (e.key === 'Escape' && router.view?.id === 'name') {
    location.hash = cameFrom;
  }
  awaiting = e.key === 'g' ? now + 1500 : NaN;
});
byID('go').addEventListener('click', () => openPalette(model));
void enter();
route();
