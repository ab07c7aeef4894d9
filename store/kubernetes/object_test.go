package kubernetes

import (
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// specStore is what the mapping needs of a store.
func specStore(fake *clock.Fake) *Store { return &Store{clock: fake} }

// object returns a Lease as the server gives it back after rec was written over prev.
func object(s *Store, rec store.Record, prev version) *coordinationv1.Lease {
	spec := s.spec(rec, prev)
	body, err := driver.Marshal(rec)
	if err != nil {
		panic(err)
	}
	notes := annotations(rec.Key, string(body), *spec.LeaseTransitions)
	if notes[annotationKey] == "" {
		delete(notes, annotationKey)
	}
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: objectName(rec.Key), UID: "u", ResourceVersion: "7", Annotations: notes},
		Spec:       spec,
	}
}

func TestDurationIsRoundedUp(t *testing.T) {
	s := specStore(clock.NewFake(0))
	for _, c := range []struct {
		rec  store.Record
		want int32
	}{
		{store.Record{Owner: "a", TTL: 15 * time.Second}, 15},
		{store.Record{Owner: "a", TTL: 15*time.Second + 1}, 16},
		{store.Record{Owner: "a", TTL: 15900 * time.Millisecond}, 16},
		{store.Record{Owner: "a", TTL: 4 * time.Second}, 4},
		{store.Record{Owner: "a", TTL: store.MaxTTL}, 366 * 24 * 3600},
		// Renewed more than once a second, which client-go can't see.
		{store.Record{Owner: "a", TTL: 3999 * time.Millisecond}, 5},
		{store.Record{Owner: "a", TTL: store.MinTTL}, 2},
		// Renewed in another record.
		{store.Record{Owner: "a", TTL: 15 * time.Second, Session: "session"}, 366 * 24 * 3600},
		{store.Record{}, 1},
	} {
		if got := *s.spec(c.rec, version{}).LeaseDurationSeconds; got != c.want {
			t.Errorf("a TTL of %v (session %q) is %d s, want %d", c.rec.TTL, c.rec.Session, got, c.want)
		}
	}
}

// client-go's elector compares times cut to whole seconds: no renewal may look to it like the one before. With a short TTL
// that would run away from the clock.
func TestRenewalsDifferInTheirSeconds(t *testing.T) {
	fake := clock.NewFake(0)
	s := specStore(fake)
	for _, ttl := range []time.Duration{15 * time.Second, time.Second} {
		prev := version{}
		for i := range 8 {
			obj := object(s, store.Record{Key: "k", Owner: "a", Token: 1, TTL: ttl}, prev)
			at := obj.Spec.RenewTime.Time
			if ttl >= often && at.Unix() <= prev.second {
				t.Errorf("renewal %d is at %v, in the second of the one before or earlier", i, at)
			}
			if ttl < often && at.After(fake.Wall()) {
				t.Errorf("renewal %d is at %v, %v ahead of the clock", i, at, at.Sub(fake.Wall()))
			}
			prev = versionOf(obj, true)
		}
	}
	now := time.Date(2026, 11, 21, 10, 0, 0, 999_999_000, time.UTC)
	for _, c := range []struct {
		before int64
		want   time.Time
	}{
		{0, now},
		{now.Unix() - 1, now},
		{now.Unix(), now.Add(time.Second).Truncate(time.Second)},
		{now.Unix() + 3600, now}, // a clock that was set back
	} {
		if at := renewTime(now, c.before); !at.Equal(c.want) {
			t.Errorf("after second %d: %v, want %v", c.before, at, c.want)
		}
	}
}

func TestTransitionsCountChangesOfHolder(t *testing.T) {
	s := specStore(clock.NewFake(0))
	prev, want := version{}, int32(0)
	for i, c := range []struct {
		owner string
		more  int32
	}{{"a", 0}, {"a", 0}, {"", 0}, {"a", 1}, {"b", 1}, {"b", 0}, {"", 0}, {"", 0}, {"c", 1}} {
		rec := store.Record{Key: "k", Owner: c.owner, Token: 1, TTL: time.Second}
		obj := object(s, rec, prev)
		want += c.more
		if got := *obj.Spec.LeaseTransitions; got != want {
			t.Errorf("write %d: %d transitions, want %d", i, got, want)
		}
		prev = versionOf(obj, true)
	}
}

func TestVersionRoundTrip(t *testing.T) {
	obj := object(specStore(clock.NewFake(0)), store.Record{Key: "k", Owner: "a", Token: 1, TTL: time.Second}, version{})
	var v version
	for _, labels := range []map[string]string{nil, {labelManaged: ""}} {
		obj.Labels = labels
		v = versionOf(obj, true)
		if got, ok := parseVersion(v.String()); !ok || got != v || v.unmanaged != (labels == nil) {
			t.Errorf("%+v, %v, want %+v", got, ok, v)
		}
	}
	for _, s := range []string{"", "7", v.String() + "0", "0" + v.String(), strings.ToUpper(v.String()), "7:u:0000000000000000:0:00000000:0", "::::::"} {
		if got, ok := parseVersion(s); ok {
			t.Errorf("%q was read as %+v", s, got)
		}
	}
}

func TestReadsWhatOthersWrote(t *testing.T) {
	s := specStore(clock.NewFake(0))
	since := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	mine := store.Record{
		Key: "k", Owner: "mine", Token: 1000, TTL: 2500 * time.Millisecond, Acquired: since, Nonce: "n", Data: []byte("state"),
		Past: []store.Term{{Owner: "older", Token: 999, From: since, Until: since, Why: "released"}},
	}
	at := metav1.NewMicroTime(since.Add(time.Hour))
	by := func(obj *coordinationv1.Lease, holder string, transitions, seconds int32) *coordinationv1.Lease {
		obj.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseTransitions: &transitions, LeaseDurationSeconds: &seconds, AcquireTime: &at, RenewTime: &at,
		}
		return obj
	}
	bare := func() *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "k", UID: "u", ResourceVersion: "7"}}
	}
	ours := func() *coordinationv1.Lease { return object(s, mine, version{uid: "u", transitions: 4}) } // with 5
	free := func() *coordinationv1.Lease {
		rec := mine
		rec.Owner, rec.TTL, rec.Acquired = "", 0, time.Time{}
		return object(s, rec, version{uid: "u", transitions: 5})
	}
	for _, c := range []struct {
		what  string
		obj   *coordinationv1.Lease
		owner string
		token uint64
		ttl   time.Duration
		nonce string
		past  int
	}{
		{"untouched", ours(), "mine", 1000, mine.TTL, "n", 1},
		{"an empty object", bare(), "", 1, 0, "foreign/", 0},
		{"made by another", by(bare(), "other", 0, 15), "other", 1, 16 * time.Second, "foreign/", 0},
		{"made by another, long ago", by(bare(), "other", 12, 15), "other", 12, 16 * time.Second, "foreign/", 0},
		{"taken", by(ours(), "other", 6, 15), "other", 1001, 16 * time.Second, "foreign/", 2},
		{"taken three times", by(ours(), "other", 8, 15), "other", 1003, 16 * time.Second, "foreign/", 2},
		{"taken without counting", by(ours(), "other", 5, 15), "other", 1001, 16 * time.Second, "foreign/", 2},
		{"taken and released", by(ours(), "", 6, 1), "", 1001, 0, "foreign/", 2},
		{"taken after a release", by(free(), "other", 6, 15), "other", 1001, 16 * time.Second, "foreign/", 1},
		{"released by one who didn't hold it", by(ours(), "", 5, 1), "mine", 1000, mine.TTL, "n", 1},
		{"renewed by hand", by(ours(), "mine", 5, 99), "mine", 1000, mine.TTL, "n", 1},
		{"without a duration", by(bare(), "other", 0, 0), "other", 1, time.Second, "foreign/", 0},
		{"for ever", by(bare(), "other", 0, 1<<31-1), "other", 1, store.MaxTTL, "foreign/", 0},
	} {
		rec, err := read("k", c.obj)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		nonce := rec.Nonce
		if strings.HasPrefix(nonce, "foreign/") {
			nonce = "foreign/" // and a digest of what the other wrote
		}
		if rec.Owner != c.owner || uint64(rec.Token) != c.token || rec.TTL != c.ttl || nonce != c.nonce || len(rec.Past) != c.past {
			t.Errorf("%s: %+v, want owner %q, token %d, TTL %v, nonce %q, %d terms", c.what, rec, c.owner, c.token, c.ttl, c.nonce, c.past)
		}
		if err := driver.Check(rec); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if _, ours := c.obj.Annotations[annotationRecord]; ours && string(rec.Data) != "state" {
			t.Errorf("%s: the primitive's state was lost", c.what)
		}
		if c.past == 2 && (rec.Past[0].Owner != "mine" || rec.Past[0].Token != 1000 || !rec.Past[0].Until.Equal(at.Time)) {
			t.Errorf("%s: the term that ended is %+v", c.what, rec.Past[0])
		}
	}
}

func TestCorruptObjects(t *testing.T) {
	s := specStore(clock.NewFake(0))
	for _, c := range []struct {
		what, key string
		spoil     func(*coordinationv1.Lease)
		want      string
	}{
		{"no JSON", "k", func(o *coordinationv1.Lease) { o.Annotations[annotationRecord] = "{" }, "annotation leasehold.dev/record"},
		{"no term", "k", func(o *coordinationv1.Lease) { delete(o.Annotations, annotationTerm) }, "annotation leasehold.dev/transitions"},
		{"key of another name", "k", func(o *coordinationv1.Lease) { o.Annotations[annotationKey] = "other" }, "whose object is named other"},
		{"no key", "k", func(o *coordinationv1.Lease) { o.Annotations[annotationKey] = "\x00" }, "annotation leasehold.dev/key"},
		{"a cut name without its key", strings.Repeat("x", 255), func(o *coordinationv1.Lease) { delete(o.Annotations, annotationKey) }, "is missing"},
	} {
		obj := object(s, store.Record{Key: c.key, Owner: "a", Token: 1, TTL: time.Second}, version{})
		c.spoil(obj)
		_, err := read(c.key, obj)
		if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.key) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	// Two keys with one name, as if the hash had collided.
	obj := object(s, store.Record{Key: "other", Token: 1}, version{})
	if _, err := read("k", obj); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), `another key, "other"`) {
		t.Errorf("another key's object: %v", err)
	}
}
