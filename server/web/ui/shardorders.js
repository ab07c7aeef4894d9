// @ts-check
// What an operator can have a sharded space do: move a slice, drain a worker, and let it own slices again.
import { quote } from './command.js';
import { openDialog } from './dialog.js';
import { h } from './dom.js';
import { explained } from './operations.js';

/**
 * @typedef {import('./shards.js').Space} Space
 * @typedef {import('./shards.js').Worker} Worker
 * @typedef {import('./shards.js').Slice} Slice
 * @typedef {(path: string, init?: RequestInit) => Promise<Response>} Ask
 */

/**
 * send orders something.
 * @param {Ask} ask
 * @param {Space} space
 * @param {string} order
 * @param {Record<string, any>} body
 */
async function send(ask, space, order, body) {
  try {
    await ask(`/v1/shards/${encodeURIComponent(space.space)}/${order}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  } catch (err) {
    throw explained(err);
  }
}

/**
 * line is the same order as a command.
 * @param {string} verb
 * @param {string[]} words
 */
function line(verb, words) {
  return `leasehold shard ${verb} ${words.map(quote).join(' ')} --store ${quote(location.origin)}`;
}

/** @param {Worker} w */
const takes = (w) => !w.leaving && !w.drained && !w.silent;

/**
 * openMove moves one slice of a worker to another.
 * @param {Ask} ask
 * @param {Space} space
 * @param {Worker} from
 * @param {(said: string) => void} done
 */
export function openMove(ask, space, from, done) {
  const mine = space.list.filter((e) => e.session === from.session && !e.next), others = space.workers.filter((w) => w !== from && takes(w));
  const slice = /** @type {HTMLSelectElement} */ (h('select', { id: 'move-slice' }, ...mine.map((e) => h('option', { value: e.slice }, e.slice))));
  const to = /** @type {HTMLSelectElement} */ (h('select', { id: 'move-to' }, ...others.map((w) => h('option', { value: w.holder }, `${w.worker}, with ${w.slices}`))));
  const named = () => others.find((w) => w.holder === to.value)?.worker || '';
  openDialog(`Move a slice of ${from.worker}`, {
    kind: 'handoff',
    body: [
      h('p', {}, `The server orders ${from.worker} to stop the slice. Then the other worker gets the slice with a higher token. Nobody serves the slice while ${from.worker} stops it.`),
      h('p', {}, 'The assigner may move it again, to balance the workers. To keep a slice where it is, place it: leasehold shard place.'),
      h('label', {}, 'Slice ', slice), h('label', {}, 'To ', to),
      others.length === 0 ? h('p.problem', {}, 'There is no other worker that takes slices.') : null,
    ],
    confirm: 'Move the slice',
    ready: () => slice.value !== '' && to.value !== '',
    command: () => line('move', [space.space, slice.value, '--to', named()]),
    async submit() {
      await send(ask, space, 'move', { slice: slice.value, to: to.value });
      done(`The server has ordered ${from.worker} to hand ${slice.value} to ${named()}.`);
    },
  });
}

/**
 * openDrain has a worker hand over all that it owns, or lets it own slices again.
 * @param {Ask} ask
 * @param {Space} space
 * @param {Worker} worker
 * @param {(said: string) => void} done
 */
export function openDrain(ask, space, worker, done) {
  const others = space.workers.filter((w) => w !== worker && takes(w)), undo = Boolean(worker.drained);
  const typed = /** @type {HTMLInputElement} */ (h('input', { id: 'confirm-name', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false' }));
  openDialog(undo ? `Let ${worker.worker} own slices again` : `Drain ${worker.worker}`, {
    kind: undo ? 'handoff' : 'pause',
    body: undo ? [h('p', {}, `${worker.worker} gets its share of the ${space.slices.toLocaleString('en')} slices again, one after the other, from the workers that have most.`)] : [
      h('p', {}, `${worker.worker} hands over its ${worker.slices.toLocaleString('en')} slices, and gets none until the drain is undone. Nobody serves a slice while ${worker.worker} stops it. Its process keeps running.`),
      others.length === 0 ? h('p.problem', {}, 'There is no other worker that takes slices: it keeps them.') : h('p', {}, `They go to ${others.map((w) => w.worker).join(', ')}.`),
      h('label', {}, h('span', {}, 'Type ', h('code', {}, worker.worker), ' to confirm'), typed),
    ],
    confirm: undo ? 'Let it own slices' : 'Drain the worker',
    ready: () => undo || typed.value === worker.worker,
    command: () => line('drain', [space.space, worker.worker, ...(undo ? ['--undo'] : [])]),
    async submit() {
      await send(ask, space, 'drain', { worker: worker.holder, undo });
      done(undo ? `${worker.worker} may own slices again.` : `The server has ordered ${worker.worker} to hand over all its slices.`);
    },
  });
}
