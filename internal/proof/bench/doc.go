// Package bench measures what holding a name costs, beside what the file system's own synchronous
// write costs in the same run: figures of different machines can be compared by their ratio. `make
// bench` writes them into docs/benchmarks.md.
package bench
