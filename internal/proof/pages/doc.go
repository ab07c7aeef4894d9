// Package pages runs the command blocks of the documentation, and compares what they print.
//
// A block in `sh` has to end with exit code 0. In a block in `console`, each line that begins with
// "$ " is typed, and what follows it is compared with what it prints. In that, times, durations,
// tokens, holders' ids and addresses stand for any, an … stands for anything within a line, and a
// line of … for any lines.
//
// Each block runs in a folder of its own, with an empty home. Programs that it calls as ./NAME are
// there, and do nothing. HTML comments before a block say what else is needed:
//
//	<!-- not run: REASON -->   it isn't run; its calls of leasehold are still parsed
//	<!-- given: SHELL -->      is run first; may have several lines
//	<!-- with: ENGINE -->      a real server: addresses in URLs of that engine become its own
//	<!-- stopped: DURATION --> each call of leasehold is interrupted after that, which is no failure
//	<!-- one session -->       anywhere in a page: its blocks are one session in one folder, in their order
//
// The lock server's address, 127.0.0.1:7070, becomes a free one.
package pages
