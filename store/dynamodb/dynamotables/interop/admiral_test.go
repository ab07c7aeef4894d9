package interop

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/store/dynamodb/dynamotables"
)

const (
	admiralWait      = 2 // seconds
	admiralThreshold = 2
	// ourTTL keeps what admiral's doc asks for: TTL/3 is below the wait.
	ourTTL = 4 * time.Second
)

// admiral is an instance that runs Admiral's published algorithm, faults included: it scans one page of the table, eventually
// consistent; it compares wall clocks; its writes are unconditional, and what becomes of them is ignored.
type admiral struct {
	t      testing.TB
	client *dynamodb.Client
	table  string
	lease  string
	pod    string
	now    func() int64 // its wall clock, in seconds

	readOnly    bool
	initialized bool
}

// admiralRow is the struct that Admiral keeps a row in.
type admiralRow struct {
	leaseName, leaseOwner, notes string
	updatedTime                  int64
}

func newAdmiral(t testing.TB, w *world, pod string) *admiral {
	return &admiral{
		t: t, client: w.client, table: w.table, lease: "job", pod: pod, readOnly: true, now: func() int64 { return time.Now().UTC().Unix() },
	}
}

// read is the first half of a tick.
func (a *admiral) read() (row admiralRow, ok bool) {
	out, err := a.client.Scan(context.Background(), &dynamodb.ScanInput{TableName: &a.table})
	if err != nil {
		a.readOnly = true
		return row, false
	}
	item := admiralRow{} // one for all rows: what a row lacks it gets from the row before
	for _, attrs := range out.Items {
		for name, v := range attrs {
			switch name {
			case "leaseName":
				item.leaseName = text(v)
			case "leaseOwner":
				item.leaseOwner = text(v)
			case "notes":
				item.notes = text(v)
			case "updatedTime":
				n, err := strconv.ParseInt(text(v), 10, 64)
				if err != nil {
					a.t.Errorf("Admiral panics at %v", attrs)
				}
				item.updatedTime = n
			}
		}
		if item.leaseName == a.lease {
			return item, true
		}
	}
	return admiralRow{leaseName: a.lease, notes: fmt.Sprintf("Created at %d", a.now())}, true
}

// act is the second half.
func (a *admiral) act(row admiralRow) {
	now := a.now()
	switch {
	case row.leaseOwner == "":
		row.leaseOwner, row.updatedTime = a.pod, now
		a.put(row) // active only after a later tick has read it back
	case row.leaseOwner == dynamotables.HoldOwner:
		a.readOnly, a.initialized = true, true
	case row.leaseOwner == a.pod:
		a.readOnly, a.initialized = false, true
		row.updatedTime = now
		a.put(row)
	case row.updatedTime < now-admiralWait*admiralThreshold:
		row.leaseOwner, row.updatedTime = a.pod, now
		a.put(row)
	default:
		a.readOnly, a.initialized = true, true
	}
}

// put writes the whole row, whatever is there.
func (a *admiral) put(row admiralRow) {
	_, _ = a.client.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &a.table, Item: map[string]types.AttributeValue{
		"leaseName": &types.AttributeValueMemberS{Value: row.leaseName}, "leaseOwner": &types.AttributeValueMemberS{Value: row.leaseOwner},
		"updatedTime": &types.AttributeValueMemberN{Value: strconv.FormatInt(row.updatedTime, 10)}, "notes": &types.AttributeValueMemberS{Value: row.notes},
	}})
}

func (a *admiral) tick() {
	if row, ok := a.read(); ok {
		a.act(row)
	}
}

// active ticks and reports whether the instance writes.
func (a *admiral) active() bool { a.tick(); return !a.readOnly }

// ticks does what Admiral does, every wait, for a while; look comes after each tick.
func (a *admiral) ticks(n int, look func()) {
	for i := range n {
		if i > 0 {
			time.Sleep(admiralWait * time.Second)
		}
		a.tick()
		look()
	}
}

func admiralWorld(t testing.TB) *world {
	return newWorld(t, "leaseName", "", func(c dynamotables.Client, table string) (*dynamotables.Store, error) {
		return dynamotables.Admiral(c, dynamotables.AdmiralOptions{Table: table, Wait: admiralWait * time.Second, Threshold: admiralThreshold})
	})
}

// Admiral holds; we are passive; it crashes, and we take over when its rule says so.
func TestAdmiralHoldsAndCrashes(t *testing.T) {
	t.Parallel()
	stalltest.Run(t, admiralHoldsAndCrashes)
}

func admiralHoldsAndCrashes(t testing.TB) {
	w := admiralWorld(t)
	they, m := newAdmiral(t, w, "pod-1"), w.manager(w.url, ourTTL)
	they.ticks(4, func() { excluded(t, m, "job") })
	if they.readOnly {
		t.Fatal("Admiral is not active")
	}
	before := w.row("job")
	crashed := time.Now()
	l := acquire(t, m, "job")
	const window = admiralWait * admiralThreshold
	if least := seconds(t, text(before["updatedTime"])) + window; time.Now().Unix() <= least {
		t.Errorf("we took over %d s before Admiral's rule allows it", least+1-time.Now().Unix())
	}
	if took := time.Since(crashed); took > (window+admiralWait)*time.Second+2*time.Second {
		t.Errorf("we took over %v after the crash", took)
	}
	if text(w.row("job")["notes"]) != text(before["notes"]) {
		t.Error("Admiral's notes are gone")
	}
	release(t, l)
}

// We hold, an Admiral looks on and stays passive; we release, and it becomes active, but only after it has read itself back.
func TestAdmiralIsExcluded(t *testing.T) {
	t.Parallel()
	stalltest.Run(t, admiralIsExcluded)
}

func admiralIsExcluded(t testing.TB) {
	w := admiralWorld(t)
	they, m := newAdmiral(t, w, "pod-1"), w.manager(w.url, ourTTL)
	l := acquire(t, m, "job")
	they.ticks(5, func() { // longer than the window
		if err := l.Check(); err != nil || !they.readOnly {
			t.Fatalf("we: %v; Admiral is read-only: %v", err, they.readOnly)
		}
	})
	first := l.Token()
	release(t, l)
	if they.active() {
		t.Error("active before it has read itself back")
	}
	excluded(t, m, "job")
	if !they.active() {
		t.Error("not active although it is the owner")
	}
	they.ticks(2, func() { excluded(t, m, "job") })
	l = acquire(t, m, "job")
	if l.Token() <= first {
		t.Errorf("token %d after %d, which Admiral wiped", l.Token(), first)
	}
	release(t, l)
}

// We crash: Admiral takes over, and not while the lease is valid.
func TestAdmiralTakesOver(t *testing.T) {
	t.Parallel()
	stalltest.Run(t, admiralTakesOver)
}

func admiralTakesOver(t testing.TB) {
	w := admiralWorld(t)
	they := newAdmiral(t, w, "pod-1")
	l, _ := cutOffFor(t, w, ourTTL)
	until(t, "Admiral takes over", 30*time.Second, func() bool { they.tick(); return text(w.row("job")["leaseOwner"]) == "pod-1" })
	if err := l.Check(); err == nil {
		t.Fatalf("Admiral took over with %v of validity left", l.Left())
	}
}

// An operator's hold stops both: we don't take it however long it lasts, we lose what we hold, and Admiral stays passive.
func TestAdmiralHoldStopsEverybody(t *testing.T) {
	t.Parallel()
	stalltest.Run(t, admiralHoldStopsEverybody)
}

func admiralHoldStopsEverybody(t testing.TB) {
	w := admiralWorld(t)
	they, m := newAdmiral(t, w, "pod-1"), w.manager(w.url, ourTTL)
	l := acquire(t, m, "job")
	_, err := w.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{ // as an operator does, on a console
		TableName: &w.table, Key: map[string]types.AttributeValue{"leaseName": &types.AttributeValueMemberS{Value: "job"}},
		UpdateExpression:          ptr("SET leaseOwner = :o"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":o": &types.AttributeValueMemberS{Value: dynamotables.HoldOwner}},
	})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "we stop", ourTTL, func() bool { return l.Check() != nil })
	they.ticks(4, func() { // longer than the window
		excluded(t, m, "job")
		if !they.readOnly || !they.initialized {
			t.Errorf("Admiral is read-only: %v, initialised: %v", they.readOnly, they.initialized)
		}
	})
	if owner := text(w.row("job")["leaseOwner"]); owner != dynamotables.HoldOwner {
		t.Errorf("the hold became one of %s", owner)
	}
}

// Admiral's writes are unconditional. One that was on its way while we took over undoes that. We find out at the next renewal;
// an Admiral that took over so is active only when it has read itself back, a wait later: never both, since TTL/3 is below the
// wait.
func TestAdmiralLateTakeOverMeetsNobodyActive(t *testing.T) {
	t.Parallel()
	stalltest.Run(t, admiralLateTakeOverMeetsNobodyActive)
}

func admiralLateTakeOverMeetsNobodyActive(t testing.TB) {
	w := admiralWorld(t)
	they, m := newAdmiral(t, w, "pod-2"), w.manager(w.url, ourTTL)
	newAdmiral(t, w, "pod-1").tick() // holds once, and crashes
	time.Sleep((admiralWait*admiralThreshold + 1) * time.Second)
	stale, ok := they.read() // sees it expired, and is held up
	l := acquire(t, m, "job")
	if !ok {
		t.Fatal("no read")
	}
	they.act(stale)
	wiped := time.Now()
	if owner := text(w.row("job")["leaseOwner"]); owner != "pod-2" || l.Check() != nil {
		t.Fatalf("the row is of %s, we: %v: want the row wiped under a lease that is valid", owner, l.Check())
	}
	until(t, "we find out", ourTTL, func() bool { return l.Check() != nil })
	t.Logf("found out %v after the late write, and the next tick comes after %d s", time.Since(wiped), admiralWait)
	time.Sleep(max(time.Until(wiped.Add(admiralWait*time.Second)), 0))
	if !they.active() {
		t.Error("Admiral is not active at its next tick")
	}
	excluded(t, m, "job")
}

// What can't be helped: an Admiral that was active, was stopped in the middle of a tick for longer than the window, and
// goes on with its write, believes that it is active at once. Both are, until our next renewal. We end it within TTL/3; Admiral
// never would.
func TestAdmiralThatWakesUpOverlapsUntilTheNextRenewal(t *testing.T) {
	t.Parallel()
	stalltest.Run(t, admiralThatWakesUpOverlapsUntilTheNextRenewal)
}

func admiralThatWakesUpOverlapsUntilTheNextRenewal(t testing.TB) {
	w := admiralWorld(t)
	they, m := newAdmiral(t, w, "pod-1"), w.manager(w.url, ourTTL)
	they.ticks(2, func() {})
	own, _ := they.read() // owner is itself; stopped here
	l := acquire(t, m, "job")
	they.act(own)
	woke := time.Now()
	if they.readOnly || l.Check() != nil {
		t.Fatalf("Admiral is read-only: %v, we: %v: want both active", they.readOnly, l.Check())
	}
	overlap := until(t, "we find out", ourTTL, func() bool { return l.Check() != nil })
	if most := ourTTL/3 + time.Second; time.Since(woke) > most {
		t.Errorf("both were active for %v, want at most %v", overlap, most)
	}
	t.Logf("both were active for %v", overlap)
	// The fencing token tells them apart: the next term has a higher one, and Admiral has none.
	first := l.Token()
	l = acquire(t, m, "job")
	if l.Token() <= first {
		t.Errorf("token %d after %d", l.Token(), first)
	}
	release(t, l)
}

// A wall clock that is ahead makes Admiral take over what is ours. Skew covers it.
func TestAdmiralAheadOfUs(t *testing.T) {
	t.Parallel()
	stalltest.Run(t, admiralAheadOfUs)
}

func admiralAheadOfUs(t testing.TB) {
	const ahead = 20
	for _, skew := range []time.Duration{0, ahead * time.Second} {
		w := admiralWorld(t)
		w.open = func(c dynamotables.Client, table string) (*dynamotables.Store, error) {
			return dynamotables.Admiral(c, dynamotables.AdmiralOptions{Table: table, Wait: admiralWait * time.Second, Threshold: admiralThreshold, Skew: skew})
		}
		they, m := newAdmiral(t, w, "pod-1"), w.manager(w.url, ourTTL)
		they.now = func() int64 { return time.Now().Unix() + ahead }
		l := acquire(t, m, "job")
		they.ticks(3, func() {})
		if taken := text(w.row("job")["leaseOwner"]) == "pod-1"; taken != (skew == 0) {
			t.Errorf("with a skew of %v allowed for, an Admiral %d s ahead took the lease: %v", skew, ahead, taken)
		}
		if skew != 0 {
			if err := l.Check(); err != nil {
				t.Error(err)
			}
		}
	}
}
