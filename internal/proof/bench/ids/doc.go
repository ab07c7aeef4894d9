// Package ids measures what an id costs, beside other libraries in the same run, and sees that the
// layouts which flake has in common with them are bit for bit theirs. `scripts/bench-ids` writes
// the figures into docs/benchmarks-ids.md.
package ids
