package lease_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/memory"
)

// ledgerBook is a guarded resource. It knows no lease and asks no clock: it remembers the highest token that it has
// accepted, and refuses a request of an earlier term.
type ledgerBook struct {
	mark    fence.Mark
	entries []string
}

func (b *ledgerBook) append(holder string, token fence.Token, entry string) error {
	mark, err := b.mark.Admit("ledger", holder, token)
	if err != nil {
		return err
	}
	b.mark, b.entries = mark, append(b.entries, entry)
	return nil
}

// exampleManager returns a manager of leases in memory, and what closes it.
func exampleManager() (m *lease.Manager, closeAll func()) {
	st := memory.New(memory.Options{})
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		panic(err) // the options are the defaults
	}
	return m, func() { _ = m.Close(); _ = st.Close() }
}

// Acquire a name, check the lease before each step that must not be done twice, send its token to what it guards, and
// release it.
func ExampleManager_Acquire() {
	st := memory.New(memory.Options{}) // or any other engine: store/file, say
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{TTL: 15 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()

	ctx := context.Background()
	l, err := m.Acquire(ctx, "billing") // waits while somebody else holds it
	if err != nil {
		fmt.Println(err)
		return
	}
	var book ledgerBook
	for _, entry := range []string{"invoice 1", "invoice 2"} {
		if err := l.Check(); err != nil { // nanoseconds; fails as soon as the lease can't be relied on any more
			fmt.Println(err)
			return
		}
		if err := book.append(l.Holder(), l.Token(), entry); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := l.Release(ctx); err != nil {
		fmt.Println(err)
	}

	next, err := m.Acquire(ctx, "billing")
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = book.append(next.Holder(), next.Token(), "invoice 3")
	late := book.append(l.Holder(), l.Token(), "invoice 2, again") // a request of the first term that was delayed
	fmt.Println(len(book.entries), "entries; late request refused:", late != nil)
	_ = next.Release(ctx)
	// Output: 3 entries; late request refused: true
}

// Run holds a name while a function runs, and releases it when the function has returned.
func ExampleManager_Run() {
	st := memory.New(memory.Options{})
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()

	err = m.Run(context.Background(), "nightly-report", func(ctx context.Context, l *lease.Lease) error {
		fmt.Println("working under", l.Name())
		return ctx.Err() // ctx is done when the lease is lost: stop at once then
	})
	fmt.Println("error:", err)
	// Output:
	// working under nightly-report
	// error: <nil>
}

// A session keeps many leases alive with one write every third of the TTL.
func ExampleManager_OpenSession() {
	st := memory.New(memory.Options{})
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()

	ctx := context.Background()
	s, err := m.OpenSession(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	var leases []*lease.Lease
	for i := range 1000 {
		l, err := s.Acquire(ctx, fmt.Sprintf("shard/%d", i))
		if err != nil {
			fmt.Println(err)
			return
		}
		leases = append(leases, l)
	}
	fmt.Println(len(leases), "leases, the last one valid:", leases[999].Check() == nil)
	fmt.Println("closed:", s.Close(ctx), "valid:", leases[999].Check() == nil) // one write frees all
	// Output:
	// 1000 leases, the last one valid: true
	// closed: <nil> valid: false
}

// An operator ends the term of a holder that hangs. Its manager holds nothing: it only reaches the store.
func ExampleManager_Break() {
	m, closeAll := exampleManager()
	defer closeAll()
	ctx := context.Background()
	stuck, err := m.Acquire(ctx, "billing") // elsewhere, as a rule
	if err != nil {
		fmt.Println(err)
		return
	}

	_, err = m.Break(ctx, "billing", lease.EndTerm{Token: stuck.Token(), By: "ada@ops", Reason: "hangs since 3:00"})
	fmt.Println("broken:", err == nil)
	_, err = m.Break(ctx, "billing", lease.EndTerm{Token: stuck.Token() - 1, By: "ada@ops"})
	fmt.Println("another term is left alone:", errors.Is(err, fence.ErrStale))
	// Output:
	// broken: true
	// another term is left alone: true
}
