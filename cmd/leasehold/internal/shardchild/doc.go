// Package shardchild runs one command for each slice of a sharded space, each under a supervisor
// process of its own: the host.
//
// Package supervise ends one command and all that it starts. A worker has as many commands as it
// owns slices, and a descendant that one of them left to itself has to be told from those of the
// others. So `leasehold shard run` starts this program once more for each command, as a host. A
// host supervises its command with two guards, as `leasehold run` does:
//
//	leasehold shard run ──pipe──► host ──► guard, guard
//	        ▲                      │
//	        └──────── life ────────┴──► command
//
// The worker tells the host until when the session is valid. The host ends the command before that
// time: when the worker is stopped, when the store hangs, and when no word comes. When the worker
// dies, the pipe ends, and the host ends the command at once.
//
// # When is a command gone?
//
// The life is a pipe that the host and its guards keep open until nothing of the command is left,
// as they do the proof of the store ([driver.Proof]). So the worker knows by the end of the life
// that it may pass the slice on, also when the host was killed: its guards end the command then.
package shardchild
