package sim

import "container/heap"

// queue is the future: events in the order of their time, and of their making within one instant.
type queue struct {
	events []event
	made   uint64
}

type event struct {
	at  int64 // true time, ns
	seq uint64
	run func()
}

func (q *queue) add(at int64, run func()) {
	q.made++
	heap.Push(q, event{at, q.made, run})
}

func (q *queue) next() event { return heap.Pop(q).(event) }

func (q *queue) Len() int { return len(q.events) }

func (q *queue) Less(i, j int) bool {
	a, b := q.events[i], q.events[j]
	return a.at < b.at || (a.at == b.at && a.seq < b.seq)
}

func (q *queue) Swap(i, j int) { q.events[i], q.events[j] = q.events[j], q.events[i] }

func (q *queue) Push(e any) { q.events = append(q.events, e.(event)) }

func (q *queue) Pop() any {
	last := len(q.events) - 1
	e := q.events[last]
	q.events[last] = event{}
	q.events = q.events[:last]
	return e
}
