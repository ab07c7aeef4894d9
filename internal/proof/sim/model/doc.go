// Package model checks the lease protocol's rules exhaustively in small worlds: two or three
// processes, one or two records, time in steps, and every order in which requests and answers can
// arrive, late or never, in which processes can be paused, killed or cloned, and in which programs
// can let go. The transitions are those of internal/protocol and internal/drive, the code that runs
// in production; nothing of it is written again here.
//
// The search is breadth-first, so that a violation is found by a shortest story, and told as one.
// States that differ only in when they come about are one state. They are told apart by a hash of
// 64 bits: in a search of 10 million states two of them may be taken for one with a probability of
// about 3 in a million.
package model
