package leaseotel

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/metric"
)

// MaxQueue is how many spans wait for the span processor before further ones are dropped.
const MaxQueue = 4096

// queue ends spans in order, on a goroutine that runs while there are any. A span processor may
// block in the end of a span; nobody waits for that goroutine but Flush.
type queue struct {
	dropped metric.Int64Counter

	mu      sync.Mutex
	jobs    []func()
	running bool
	idle    chan struct{} // closed when the goroutine ends
}

// put has job done later. It doesn't block. When the queue is full, the job is dropped.
func (q *queue) put(job func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) >= MaxQueue {
		q.dropped.Add(context.Background(), 1)
		return
	}
	q.jobs = append(q.jobs, job)
	if !q.running {
		q.running, q.idle = true, make(chan struct{})
		go q.run()
	}
}

func (q *queue) run() {
	for job := q.take(); job != nil; job = q.take() {
		job()
	}
}

func (q *queue) take() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) == 0 {
		q.jobs, q.running = nil, false
		close(q.idle)
		return nil
	}
	job := q.jobs[0]
	q.jobs[0], q.jobs = nil, q.jobs[1:]
	return job
}

// Flush blocks until all spans that have ended were passed to the span processor, or ctx is done,
// whose cause it returns then. Call it after the managers are closed, and before the tracer
// provider is shut down.
func (t *Telemetry) Flush(ctx context.Context) error {
	t.queue.mu.Lock()
	running, idle := t.queue.running, t.queue.idle
	t.queue.mu.Unlock()
	if !running {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
