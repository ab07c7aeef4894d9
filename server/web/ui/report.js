// @ts-check
// The report of an incident, which the server writes of its journal: it is copied as Markdown, into a ticket or a chat.
import { quote } from './command.js';
import { openDialog } from './dialog.js';
import { h } from './dom.js';
import { problem } from './spans.js';

/**
 * openReport shows what became of names in a time, to be copied.
 * @param {typeof import('./api.js').ask} ask
 * @param {number} since  in ms of the server's time of day
 * @param {number} until
 * @param {string} prefix
 */
export async function openReport(ask, since, until, prefix) {
  const time = { since: new Date(since).toISOString(), until: new Date(until).toISOString() };
  const text = /** @type {HTMLTextAreaElement} */ (h('textarea', { readonly: true, rows: 18, spellcheck: 'false', 'aria-label': 'The report' }));
  const said = h('p.soft', { role: 'status' }, 'Asking the server…');
  openDialog('Report of an incident', {
    body: [said, text],
    confirm: 'Copy',
    kind: 'report',
    ready: () => text.value !== '',
    command: () => `leasehold history --since ${time.since} --until ${time.until}${prefix ? ` --prefix ${quote(prefix)}` : ''} --report --store ${quote(location.origin)}`,
    async submit() {
      try {
        await navigator.clipboard.writeText(text.value);
      } catch { // not over plain HTTP from another machine
        text.select();
        throw new Error('The browser does not let this page copy. The report is selected: press Ctrl C.');
      }
    },
  });
  try {
    text.value = await (await ask(`/v1/history/report?${new URLSearchParams({ ...time, prefix })}`)).text();
    said.textContent = `What became of ${prefix ? `names that begin with ${prefix}` : 'all names'} in the time of the timeline, the worst first, as Markdown.`;
  } catch (err) {
    said.textContent = problem(err);
  }
  text.dispatchEvent(new Event('input', { bubbles: true }));
}
