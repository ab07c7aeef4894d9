// Package server holds what the lock server as a whole has to show, with the command as it is built
// and real connections: that nothing acknowledged is lost when it is killed, that a crowd of
// waiters fits into memory and is served in order, and what an acquisition costs beside other lock
// servers, whose protocols it speaks itself. scripts/bench-server writes docs/benchmarks-server.md.
package server
