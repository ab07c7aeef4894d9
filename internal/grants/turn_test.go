package grants

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store/faulty"
)

// A change of an idle name is made by whoever asks for it. Who comes meanwhile waits for that, and is served then; and a wait that
// ends meanwhile ends in time.
func TestComesDuringAChange(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		rec := granted(t, r, wants("holder", 0))
		net.SetPlan(once(faulty.Fault{Delay: 2 * time.Second}, puts("")))
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
		if rec := w.get("job"); rec.Owner != "" || w.written() != 4 {
			t.Errorf("%+v after %d writes", rec, w.written())
		}
	})
}
