package lessor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/store/faulty"
)

// A change of an idle name is made by whoever asks for it. Who comes meanwhile waits for that, and is served then; and a wait that
// ends meanwhile ends in time.
func TestComesDuringAChange(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		rec := granted(t, r, wants("holder", 0))
		net.SetPlan(leasetest.Once(faulty.Fault{Delay: 2 * time.Second}, leasetest.ByOwner("")))
		begun := time.Now()
		free := make(chan struct{})
		go func() {
			defer close(free)
			released(t, r, rec)
		}()
		synctest.Wait()
		hasty, patient := send(r, wants("hasty", time.Second)), send(r, wants("patient", time.Minute))
		<-hasty.done
		if got := hasty.at.Sub(begun).Truncate(time.Microsecond); got != time.Second || hasty.err == nil {
			t.Errorf("the wait ended after %v: %v", got, hasty.err)
		}
		<-free
		<-patient.done
		if got := patient.at.Sub(begun).Truncate(time.Microsecond); got != 2*time.Second || patient.err != nil {
			t.Errorf("granted after %v: %v", got, patient.err)
		}
		released(t, r, patient.grant.Record)
		if rec := w.Get("job"); rec.Owner != "" || w.Writes() != 4 {
			t.Errorf("%+v after %d writes", rec, w.Writes())
		}
	})
}

// While a name goes from one to the next at once, nobody reads its record or asks the store to tell of changes; when it stays with
// one, somebody does.
func TestWatchesCalmNames(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		r, net := w.registry()
		rec := granted(t, r, wants("holder", 0))
		var queue []*request
		for _, owner := range names(5) {
			queue = append(queue, send(r, wants(owner, time.Minute)))
		}
		reads := net.Count(faulty.Get)
		for _, q := range queue {
			released(t, r, rec)
			<-q.done
			rec = q.grant.Record
		}
		last := send(r, wants("last", time.Minute))
		if got := net.Count(faulty.Wait); got != 0 || net.Count(faulty.Get) != reads || last.over() {
			t.Errorf("%d waits for changes, %d reads", got, net.Count(faulty.Get)-reads)
		}
		time.Sleep(2 * calm)
		synctest.Wait()
		if got := net.Count(faulty.Wait); got != 1 {
			t.Errorf("%d waits for a change of a name that is calm", got)
		}
		other, _ := w.registry()
		released(t, other, rec)
		if <-last.done; last.err != nil || last.grant.Record.Token <= rec.Token {
			t.Errorf("after a release by another registry: %+v, %v", last.grant, last.err)
		}
	})
}
