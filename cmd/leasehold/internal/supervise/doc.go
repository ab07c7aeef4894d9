// Package supervise keeps a command from outliving the lease that it runs under.
//
// # The rule
//
// The command, and everything that it started, is gone before the validity of the lease ends. So it is told to stop while
// there still is time to make it stop:
//
//	sent           renewal due                    terminate            kill        validity ends
//	 ├──────────────────┼──── retries ────────────────┼──── KillAfter ────┼── Slack ─────┤
//	 0                Renew                                                          TTL·(1−δ)
//
// Every renewal moves the whole picture on. When none has come by the time marked terminate, the group gets SIGTERM; it is
// not spared by a renewal that comes after that. At the time marked kill it gets SIGKILL. Slack is for the kernel, the
// scheduler and the reaping. A hold that is lost early (taken, or broken by an operator) terminates the group at once, and
// kills it after KillAfter, or at the time marked kill if that is earlier.
//
// # States
//
//	          lost, not renewed in time, asked to end, or the command has ended and left something behind
//	Running ─────────────────────────────────▶ Stopping ───────────────────────▶ Killing ──┐ again, until
//	   │                                           │        KillAfter, or Slack     │  ▲────┘ nothing is left
//	   └───────────────────────────────────────────┴───────────────▶ Gone ◀─────────┘
//	                             nothing is left
//
// Only when all is gone may the lease be released. A command that is asked to end while its lease goes on has Drain for that, in
// place of KillAfter.
//
// # Who watches the watcher
//
// The supervisor may itself be killed or stopped. So a second process, the guard, is told the command's process group and
// the time by which it has to be dead. It kills the group when that time comes, or when the supervisor is gone. On Linux the
// kernel kills the command, too, when the supervisor dies (PR_SET_PDEATHSIG), and the supervisor is a child subreaper: what
// the command started and then left to itself becomes a child of the supervisor, which finds it and ends it. What other parts of this
// program start and wait for, a probe or a store's helper for credentials, and what was there before the command, it leaves alone.
//
// # What this can't promise
//
// A process that left the group (setsid), or the machine's process tree altogether (a container started through a daemon),
// survives the SIGKILL of the supervisor. A process that the kernel can't kill (uninterruptible sleep) outlives the
// validity; the lease is not released until it is gone, but others may take it. A machine or a container that is paused as a
// whole pauses supervisor and guard too. In all these cases the token, checked at the guarded resource, is what helps.
package supervise
