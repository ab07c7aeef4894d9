// Package supervise keeps a command from outliving the lease that it runs under.
//
// # The rule
//
// The command, and everything that it started, is gone before the validity of the lease ends. So it
// is told to stop while there still is time to make it stop:
//
//	sent           renewal due                    terminate            kill        validity ends
//	 ├──────────────────┼──── retries ────────────────┼──── KillAfter ────┼── Slack ─────┤
//	 0                Renew                                                          TTL·(1−δ)
//
// Every renewal moves the whole picture on. When none has come by the time marked terminate, the
// group gets SIGTERM; it is not spared by a renewal that comes after that. At the time marked kill
// it gets SIGKILL. Slack is for the kernel, the scheduler and the reaping. A hold that is lost
// early (taken, or broken by an operator) terminates the group at once, and kills it after
// KillAfter, or at the time marked kill if that is earlier.
//
// # States
//
//	          lost, not renewed in time, asked to end, or the command has ended and left something behind
//	Running ─────────────────────────────────▶ Stopping ───────────────────────▶ Killing ──┐ again, until
//	   │                                           │        KillAfter, or Slack     │  ▲────┘ nothing is left
//	   └───────────────────────────────────────────┴───────────────▶ Gone ◀─────────┘
//	                             nothing is left
//
// Only when all is gone may the lease be released. A command that is asked to end while its lease
// goes on has Drain for that, in place of KillAfter.
//
// # Who watches the watcher
//
// The supervisor may itself be killed or stopped. So two more processes, the guards, know what
// there is to end and by when. A guard kills all of it when that time comes, or when the supervisor
// is gone, and again until nothing is left. The supervisor notices when a guard ends or is stopped:
// it starts another one, or has it continue. If none can be started, the command is asked to end.
// On Linux the kernel kills the command itself, too, when the supervisor dies (PR_SET_PDEATHSIG).
//
// # How descendants are found
//
// See [Contain]. In a control group (Linux 5.14, version 2, where this process may make one) the
// kernel ends all that is in it with one write, whatever forks meanwhile. Otherwise, on Linux, the
// supervisor is a child subreaper: what the command started and then left to itself becomes a child
// of the supervisor, which ends it; and the guards look for a mark in the environment of processes
// ([EnvMark]). Elsewhere there is the process group. What other parts of this program start and
// wait for, a probe or a store's helper for credentials, and what was there before the command, is
// left alone.
//
// # What this can't promise
//
// Supervisor and both guards killed within a few milliseconds leave nobody to end what the kernel
// doesn't: descendants of the command. Work that was given to a daemon (a container, a systemd
// unit, an at job) was not started by the command. Without a control group, a process that has left
// the group and has another environment, or another user's, is not found once the supervisor is
// gone. A process that the kernel can't kill (uninterruptible sleep) outlives the validity; the
// lease is not released until it is gone, but others may take it. A machine or a container that is
// paused as a whole pauses supervisor and guards too. In all these cases the token, checked at the
// guarded resource, is what helps.
package supervise
