package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	leasehold "github.com/leasehold/leasehold/store/nats"
)

// sums is what is counted of orders.
type sums struct{ Count, Cents int }

// checkpoint is how far a partition was counted, and what was counted up to there.
type checkpoint struct {
	Seq uint64 // of the stream
	sums
}

// saveEach is after how many orders a checkpoint is saved.
const saveEach = 100

// worker consumes the partitions that it owns.
type worker struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	st    *leasehold.Store
	m     *lease.Manager
	owner *shard.Owner
	read  atomic.Int64 // messages

	mu   sync.Mutex
	runs map[*shard.Slice]*consumption
}

// consumption is of one partition, by its present owner.
type consumption struct {
	stop context.CancelFunc
	done chan struct{}

	mu  sync.Mutex
	now checkpoint
}

// newWorker joins the space.
func newWorker(ctx context.Context, url string) (*worker, error) {
	w := &worker{runs: map[*shard.Slice]*consumption{}}
	var err error
	if w.nc, w.js, err = connect(ctx, url); err != nil {
		return nil, err
	}
	if w.st, err = leasehold.Open(ctx, w.js, bucket, leasehold.Options{}); err != nil {
		return nil, errors.Join(err, w.close())
	}
	if w.m, err = lease.NewManager(w.st, lease.Options{TTL: ttl}); err != nil {
		return nil, errors.Join(err, w.close())
	}
	var names []string
	for p := range partitions {
		names = append(names, strconv.Itoa(p))
	}
	w.owner, err = shard.Join(ctx, w.m, shard.Space{Name: space, Names: names}, shard.Worker{Start: w.begin, Drain: w.drain, Stop: w.end})
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

// close frees what the worker uses. Its slices are free for others then.
func (w *worker) close() error {
	var errs []error
	if w.owner != nil {
		errs = append(errs, w.owner.Close())
	}
	if w.m != nil {
		errs = append(errs, w.m.Close())
	}
	if w.st != nil {
		errs = append(errs, w.st.Close())
	}
	w.nc.Close()
	return errors.Join(errs...)
}

// begin continues from the checkpoint of a partition. From then on no earlier owner can save one.
func (w *worker) begin(ctx context.Context, s *shard.Slice) error {
	data, err := s.Checkpoint(ctx)
	if err != nil {
		return err
	}
	c := &consumption{done: make(chan struct{})}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &c.now); err != nil {
			return err
		}
	}
	consumer, err := w.js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{"orders." + s.Name}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: c.now.Seq + 1,
	})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	ctx, c.stop = context.WithCancel(ctx) // ends with the slice
	context.AfterFunc(ctx, messages.Stop)
	w.mu.Lock()
	w.runs[s] = c
	w.mu.Unlock()
	go c.run(ctx, s, messages, &w.read)
	return nil
}

// run counts orders until ctx is done.
func (c *consumption) run(ctx context.Context, s *shard.Slice, messages jetstream.MessagesContext, read *atomic.Int64) {
	defer close(c.done)
	for ctx.Err() == nil {
		msg, err := messages.Next()
		if err != nil {
			if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
				return
			}
			continue // the consumer is made again
		}
		meta, err := msg.Metadata()
		if err != nil {
			continue
		}
		cents, _ := strconv.Atoi(string(msg.Data()))
		read.Add(1)
		c.mu.Lock()
		c.now.Seq = meta.Sequence.Stream
		c.now.Count++
		c.now.Cents += cents
		full := c.now.Count%saveEach == 0
		c.mu.Unlock()
		if full {
			_ = c.save(ctx, s) // else the next one does, or it is counted again from the last
		}
	}
}

// save saves what was counted and how far, as one record, under the slice's token.
func (c *consumption) save(ctx context.Context, s *shard.Slice) error {
	c.mu.Lock()
	data, err := json.Marshal(c.now)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return s.SaveCheckpoint(ctx, data)
}

// drain stops counting and saves a last checkpoint: the next owner begins where this one ended.
func (w *worker) drain(ctx context.Context, s *shard.Slice) {
	c := w.take(s)
	if c == nil {
		return
	}
	c.stop()
	<-c.done
	_ = c.save(ctx, s) // else the next owner counts some orders again, from the last checkpoint
}

// end stops counting without a checkpoint, after a loss.
func (w *worker) end(s *shard.Slice) {
	if c := w.take(s); c != nil {
		c.stop()
		<-c.done
	}
}

func (w *worker) take(s *shard.Slice) *consumption {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.runs[s]
	delete(w.runs, s)
	return c
}

// counted returns the sums of the partitions that the worker owns, and how many it owns.
func (w *worker) counted() (all sums, owned int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s, c := range w.runs {
		if s.Check() != nil {
			continue
		}
		c.mu.Lock()
		all.Count += c.now.Count
		all.Cents += c.now.Cents
		c.mu.Unlock()
		owned++
	}
	return all, owned
}

// fleet is all workers that ever were.
type fleet struct {
	url  string
	out  io.Writer
	all  []*worker
	gone int // of the first
}

func (f *fleet) join(ctx context.Context) error {
	w, err := newWorker(ctx, f.url)
	if err != nil {
		return err
	}
	f.all = append(f.all, w)
	fmt.Fprintf(f.out, "worker %d joins\n", len(f.all))
	return nil
}

// leave has the first worker hand all over.
func (f *fleet) leave(ctx context.Context) error {
	w := f.all[f.gone]
	f.gone++
	fmt.Fprintf(f.out, "worker %d leaves\n", f.gone)
	return errors.Join(w.owner.Leave(ctx), w.close())
}

// stop has the next worker stop at once, without a checkpoint.
func (f *fleet) stop(context.Context) error {
	w := f.all[f.gone]
	f.gone++
	fmt.Fprintf(f.out, "worker %d stops\n", f.gone)
	return w.close()
}

// total waits until the workers that are there have counted n orders, and returns the sums.
func (f *fleet) total(ctx context.Context, n int) (sums, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*ttl)
	defer cancel()
	for {
		var all sums
		owned := 0
		for _, w := range f.all[f.gone:] {
			s, n := w.counted()
			all.Count += s.Count
			all.Cents += s.Cents
			owned += n
		}
		if owned == partitions && all.Count >= n {
			return all, nil
		}
		if clock.Sleep(ctx, clock.System(), 20*time.Millisecond) != nil {
			return all, fmt.Errorf("%d of %d partitions have an owner, and %d of %d orders were counted: %w", owned, partitions, all.Count, n, ctx.Err())
		}
	}
}

// read returns how many messages all workers have read.
func (f *fleet) read() int {
	n := 0
	for _, w := range f.all {
		n += int(w.read.Load())
	}
	return n
}

func (f *fleet) end() {
	for _, w := range f.all[f.gone:] {
		_ = w.close()
	}
	f.gone = len(f.all)
}
