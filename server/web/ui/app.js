// @ts-check
// Wires the page: the stream to the model, the model to the board or to one name's detail.
import { ask, hasToken, setToken } from './api.js';
import { Board } from './board.js';
import { Detail } from './detail.js';
import { openDialog } from './dialog.js';
import { byID, duration, h, inputByID, setText } from './dom.js';
import { Live } from './live.js';
import { Model } from './model.js';
import { Overview } from './overview.js';
import { Timeline } from './timeline.js';

const tick = 250;
const slept = 2_000; // by which the time of day may run ahead of the monotonic clock before the machine must have been asleep

const model = new Model();
const board = new Board(model);
const overview = new Overview(model), timeline = new Timeline(model);
const detail = new Detail(model, (err) => refused(err));
let cut = ''; // why there is no stream
const strangers = 'nobody has signed in';

const live = new Live({
  opened(wall) {
    cut = '';
    model.opened(wall, performance.now());
    notice('');
  },
  message(m) {
    model.take(m, performance.now());
  },
  cut(why) {
    cut = why;
    board.waiting = `Nothing is known yet: ${why}. It is tried again.`;
  },
  refused,
});

/**
 * refused says what may not be seen, or asks who is there.
 * @param {import('./api.js').Problem} err
 */
function refused(err) {
  byID('who').hidden = false;
  model.forget();
  if (err.status === 401) {
    cut = strangers;
    board.waiting = 'Sign in to see who holds what.';
    signIn(hasToken() ? err.message : '');
  } else {
    cut = 'not allowed';
    board.waiting = 'You may not see this.';
    notice(err.status === 403 ? `${err.message}. Fill in the prefix that you may read.` : err.message);
  }
  status();
  board.render();
}

/** @param {string} text */
function notice(text) {
  byID('notice').hidden = text === '';
  setText(byID('notice'), text);
}

/** @param {string} why */
function signIn(why) {
  if (why) setToken(''); // it is no good
  const token = h('input', { type: 'password', name: 'token', autocomplete: 'off', required: !hasToken() });
  openDialog('Who is there?', {
    body: [
      h('p', {}, 'The bearer token that the server knows you by. It is sent to this server only, and kept until this tab is closed.'),
      hasToken() ? h('p', {}, 'Leave it empty to sign out.') : null,
      h('label', {}, 'Token ', token),
      why ? h('p.problem', { role: 'alert' }, why) : null,
    ],
    confirm: 'Go on',
    async submit() {
      model.forget();
      setToken(/** @type {HTMLInputElement} */ (token).value.trim());
      start();
    },
  });
}

function start() {
  board.waiting = 'Asking the server…';
  live.start(inputByID('prefix').value.trim());
  void describe();
}

// describe says which store is behind the server, and whom it takes us for; it is only told, so that nothing depends on it.
async function describe() {
  try {
    const [store, me] = await Promise.all(['/v1/store', '/v1/whoami'].map(async (path) => (await ask(path)).json()));
    setText(byID('engine'), `${store.engine}, ${location.host}${me.caller ? `, as ${me.caller}` : ''}`);
    byID('who').hidden = !hasToken() && (me.caller !== '' || me.may.length > 0); // known by a certificate, or anybody may do anything
    setText(byID('who'), hasToken() ? 'Sign in as another' : 'Sign in');
  } catch {
    setText(byID('engine'), location.host);
  }
}

function route() {
  const text = location.hash.startsWith('#/') ? location.hash.slice(2) : '';
  let name = '';
  try {
    name = decodeURIComponent(text);
  } catch {
    name = text;
  }
  const was = byID('board').hidden;
  const times = location.hash.startsWith('#timeline');
  byID('board').hidden = name !== '' || times;
  byID('timeline').hidden = !times;
  document.querySelectorAll('.views a').forEach((a, i) => a.toggleAttribute('aria-current', i === (times ? 1 : 0) && name === ''));
  if (times) timeline.open(location.hash);
  byID('detail').hidden = name === '';
  document.body.classList.toggle('one', name !== '');
  if (name) {
    detail.open(name);
    scrollTo(0, 0);
  } else {
    const from = detail.close();
    board.render();
    if (was && from) board.focus(Math.max(board.shown.indexOf(from), 0));
  }
}

function status() {
  const now = performance.now(), polled = detail.fresh(now), stale = polled ? 0 : model.staleFor(now);
  const why = model.error || cut;
  document.body.classList.toggle('stale', stale > 0);
  const el = byID('live');
  let state = 'live', text = 'Live';
  if (stale > 0) {
    state = 'stale';
    text = `Not current: ${duration(Math.floor(stale / 1000) * 1000)} old${why ? `, ${why}` : ''}`;
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
  const worst = board.worst > 0 ? `${board.worst}! ` : '';
  document.title = byID('board').hidden ? `${detail.name} – Leasehold` : `${worst}Leasehold`;
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
    detail.forget();
    start();
  }
}

setInterval(() => {
  wakeUp();
  status();
  board.render();
  overview.render();
  timeline.render();
  detail.render();
}, tick);

// What is sought is a part of the address, to come back to and to send to others.
function remember() {
  const query = new URLSearchParams();
  for (const id of sought) if (inputByID(id).value.trim()) query.set(id, inputByID(id).value.trim());
  const text = query.size > 0 ? `?${query}` : location.pathname;
  history.replaceState(null, '', text + location.hash);
}

const sought = ['search', 'prefix'];
for (const id of sought) {
  inputByID(id).value = new URLSearchParams(location.search).get(id) || '';
  inputByID(id).addEventListener('input', remember);
}

let typing = 0;
inputByID('prefix').addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    model.forget();
    start();
  }, 400);
});
byID('who').addEventListener('click', () => signIn(''));
addEventListener('hashchange', route);
addEventListener('keydown', (e) => {
  const typingNow = e.target instanceof HTMLInputElement || document.querySelector('dialog[open]');
  if (e.key === '/' && !typingNow && board.visible) {
    e.preventDefault();
    inputByID('search').focus();
  } else if (e.key === 'Escape' && !typingNow && !board.visible) {
    location.hash = '#/';
  }
});
start();
route();
