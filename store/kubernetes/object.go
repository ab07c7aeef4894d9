package kubernetes

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// What the specification of a Lease has no field for is in annotations.
const (
	// The record's key, where the object's name is another.
	annotationKey    = "leasehold.dev/key"
	annotationRecord = "leasehold.dev/record" // the record, as package store writes it
	// spec.leaseTransitions of the term that the record tells of.
	annotationTerm  = "leasehold.dev/transitions"
	annotationWrite = "leasehold.dev/write" // another one with each write of the record
	annotationTouch = "leasehold.dev/touch" // another one with each Touch; a write leaves it
)

// version is the compare-and-swap value of an object, with what the next write has to know of it,
// for a Put is one request that reads nothing first. All of it comes from the object, so it is the
// same whoever read it.
type version struct {
	resource    string // metadata.resourceVersion: opaque, compared for equality by the server
	uid         string // metadata.uid: another one after the object was deleted and made anew
	write       uint64 // hash of all that makes the record
	transitions int32  // spec.leaseTransitions
	holder      uint32 // hash of spec.holderIdentity
	second      int64  // spec.renewTime, in Unix seconds
	unmanaged   bool   // it lacks the label managed-by
}

// versionOf returns the version of an object; ours says that the specification tells of the same
// term as the annotations.
func versionOf(obj *coordinationv1.Lease, ours bool) version {
	v := version{
		resource: obj.ResourceVersion, uid: string(obj.UID),
		transitions: deref(obj.Spec.LeaseTransitions), holder: hash(deref(obj.Spec.HolderIdentity)),
	}
	if t := obj.Spec.RenewTime; t != nil {
		v.second = t.Unix()
	}
	_, managed := obj.Labels[labelManaged]
	v.unmanaged = !managed
	h := sha256.New()
	for _, name := range []string{annotationRecord, annotationTerm, annotationWrite} {
		fmt.Fprintf(h, "%q ", obj.Annotations[name])
	}
	if !ours {
		_, _ = h.Write([]byte(signOf(obj.Spec)))
	}
	v.write = binary.BigEndian.Uint64(h.Sum(nil))
	return v
}

// signOf is all that client-go's elector writes when it takes, renews or releases a Lease.
func signOf(spec coordinationv1.LeaseSpec) string {
	return fmt.Sprintf("%q %d %d %d %d", deref(spec.HolderIdentity), deref(spec.LeaseTransitions),
		deref(spec.LeaseDurationSeconds), micro(spec.AcquireTime), micro(spec.RenewTime))
}

// foreignNonce is another one whenever client-go's elector has written the Lease, and the same when
// somebody has labelled it.
func foreignNonce(spec coordinationv1.LeaseSpec) string {
	sum := sha256.Sum256([]byte(signOf(spec)))
	return driver.ForeignNonce(hex.EncodeToString(sum[:8]))
}

func micro(t *metav1.MicroTime) int64 {
	if t == nil {
		return 0
	}
	return t.UnixMicro()
}

// sameRecord reports whether the record is the same in both versions of an object, so that what
// changed between them is nothing but labels, finalizers and the like.
func (v version) sameRecord(u version) bool { return v.uid == u.uid && v.write == u.write }

const (
	versionSep    = ":"
	markUnmanaged = "unmanaged"
)

// String ends with a hash of the rest, for the server only knows the first two.
func (v version) String() string {
	s := fmt.Sprintf("%s:%s:%016x:%d:%08x:%d", v.resource, v.uid, v.write, v.transitions, v.holder, v.second)
	if v.unmanaged {
		s += versionSep + markUnmanaged
	}
	return fmt.Sprintf("%s:%08x", s, hash(s))
}

// parseVersion reports false for what no String returns.
func parseVersion(s string) (version, bool) {
	f := strings.Split(s, versionSep)
	unmanaged := len(f) == 8 && f[6] == markUnmanaged
	if len(f) != 7 && !unmanaged || f[0] == "" || f[1] == "" {
		return version{}, false
	}
	write, err1 := strconv.ParseUint(f[2], 16, 64)
	transitions, err2 := strconv.ParseInt(f[3], 10, 32)
	holder, err3 := strconv.ParseUint(f[4], 16, 32)
	second, err4 := strconv.ParseInt(f[5], 10, 64)
	v := version{f[0], f[1], write, int32(transitions), uint32(holder), second, unmanaged}
	return v, errors.Join(err1, err2, err3, err4) == nil && v.String() == s
}

func hash(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}

// deref returns what p points to, or the zero value.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// read returns the record under key that obj keeps. Its error says what can't be read, and matches
// [store.ErrCorrupt].
func read(key string, obj *coordinationv1.Lease) (store.Record, error) {
	rec, ours, err := readBody(key, obj)
	if err != nil {
		return store.Record{}, driver.Corrupt(key, fmt.Errorf("lease object %s/%s: %w", obj.Namespace, obj.Name, err))
	}
	rec.Key, rec.Version = key, versionOf(obj, ours).String()
	return rec, nil
}

// readBody reports whether it is what the annotations tell.
func readBody(key string, obj *coordinationv1.Lease) (rec store.Record, ours bool, err error) {
	if kept, err := keyOf(obj); err != nil || kept != key {
		return store.Record{}, false, errors.Join(err, otherKey(kept, key))
	}
	body, ok := obj.Annotations[annotationRecord]
	if !ok {
		rec, err = foreign(key, obj.Spec, store.Record{}, 0)
		return rec, false, err
	}
	if rec, err = driver.Unmarshal([]byte(body)); err != nil {
		return store.Record{}, false, fmt.Errorf("annotation %s: %w", annotationRecord, err)
	}
	term, err := strconv.ParseInt(obj.Annotations[annotationTerm], 10, 32)
	if err != nil {
		return store.Record{}, false, fmt.Errorf("annotation %s %.40q: want a number", annotationTerm, obj.Annotations[annotationTerm])
	}
	if sameTerm(obj.Spec, rec.Owner, int32(term)) {
		return rec, true, nil
	}
	rec, err = foreign(key, obj.Spec, rec, int32(term))
	return rec, false, err
}

func otherKey(kept, key string) error {
	if kept == "" || kept == key {
		return nil
	}
	return fmt.Errorf("it keeps the record of another key, %q, that has the same name: use another key", kept)
}

// keyOf returns the key whose record obj keeps.
func keyOf(obj *coordinationv1.Lease) (string, error) {
	key, annotated := obj.Annotations[annotationKey]
	if !annotated {
		key, ok := keyOfName(obj.Name)
		if !ok {
			return "", fmt.Errorf("its annotation %s, which tells the key, is missing: restore it or delete the object", annotationKey)
		}
		return key, nil
	}
	if err := driver.CheckKey(key); err != nil {
		return "", fmt.Errorf("annotation %s: %w", annotationKey, err)
	}
	if name := objectName(key); name != obj.Name {
		return "", fmt.Errorf("annotation %s is %q, whose object is named %s: correct the annotation or delete the object", annotationKey, key, name)
	}
	return key, nil
}

// sameTerm reports whether the specification still tells of the term for which the annotations were
// written. Whoever else takes the Lease sets another holder and, as client-go does, counts one
// transition more. One who only takes the holder out, without having been it, ends nothing:
// client-go's elector does that to its successor when it stops after it was overtaken unawares.
func sameTerm(spec coordinationv1.LeaseSpec, owner string, term int32) bool {
	holder := deref(spec.HolderIdentity)
	return deref(spec.LeaseTransitions) == term && (holder == owner || holder == "")
}

// foreign returns the record of a Lease that somebody else wrote after the annotations, or without
// any. last is the record in the annotations, of the term with that many transitions.
func foreign(key string, spec coordinationv1.LeaseSpec, last store.Record, term int32) (store.Record, error) {
	rec := store.Record{
		Key: key, Owner: foreignOwner(deref(spec.HolderIdentity)), Kind: last.Kind, Data: last.Data, Past: last.Past, Nonce: foreignNonce(spec),
		// Each transition is a change of ownership.
		Token: min(last.Token+fence.Token(max(deref(spec.LeaseTransitions)-term, 1)), fence.MaxToken),
	}
	var since time.Time
	if spec.AcquireTime != nil {
		since = spec.AcquireTime.UTC()
	}
	if rec.Owner != "" {
		rec.Acquired = since
		// client-go cuts the duration to whole seconds: its holder may count on up to a second
		// more.
		rec.TTL = min(time.Duration(max(deref(spec.LeaseDurationSeconds), 0))*time.Second+time.Second, store.MaxTTL)
	}
	if err := driver.Check(rec); err != nil {
		return store.Record{}, fmt.Errorf("what another program wrote: %w", err)
	}
	if last.Owner == "" {
		return rec, nil
	}
	ended := rec
	ended.Past = append([]store.Term{{
		Owner: last.Owner, Token: last.Token, From: last.Acquired, Until: since, Why: "taken by another program",
	}}, last.Past...)
	ended.Past = ended.Past[:min(len(ended.Past), store.MaxPast)]
	if driver.Check(ended) != nil { // too large: the end of a term is for people, the rest is not
		return rec, nil
	}
	return ended, nil
}

// foreignOwner returns the owner id for a holder that another program has named. One that no record
// can hold, since Kubernetes bounds neither its length nor its characters, is quoted, cut, and told
// from others by a hash.
func foreignOwner(holder string) string {
	const whole, kept = store.MaxKey, 160
	if len(holder) <= whole && utf8.ValidString(holder) && !strings.ContainsFunc(holder, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return holder
	}
	sum := sha256.Sum256([]byte(holder))
	text := strconv.QuoteToASCII(holder)
	text = text[1 : len(text)-1]
	return text[:min(len(text), kept)] + "#" + hex.EncodeToString(sum[:8])
}

// annotations returns those of an object that keeps rec, which body is. An empty one is to be taken
// off.
func annotations(key, body string, transitions int32) map[string]string {
	a := map[string]string{
		annotationRecord: body, annotationTerm: strconv.Itoa(int(transitions)), annotationWrite: rand.Text()[:16], annotationKey: "",
	}
	if objectName(key) != key {
		a[annotationKey] = key
	}
	return a
}

// spec returns the specification of an object that keeps rec and follows prev.
func (s *Store) spec(rec store.Record, prev version) coordinationv1.LeaseSpec {
	transitions := prev.transitions
	if prev.uid != "" && rec.Owner != "" && hash(rec.Owner) != prev.holder {
		// As client-go counts; the server refuses what overflows.
		if transitions++; transitions < 0 {
			transitions = 0
		}
	}
	duration := durationSeconds(rec)
	wall := s.clock.Wall().UTC().Truncate(time.Microsecond)
	if rec.TTL >= often {
		wall = renewTime(wall, prev.second)
	}
	renewed := metav1.NewMicroTime(wall)
	spec := coordinationv1.LeaseSpec{
		HolderIdentity: &rec.Owner, LeaseDurationSeconds: &duration, LeaseTransitions: &transitions, RenewTime: &renewed,
	}
	if !rec.Acquired.IsZero() {
		acquired := metav1.NewMicroTime(rec.Acquired.UTC().Truncate(time.Microsecond))
		spec.AcquireTime = &acquired
	}
	return spec
}

// client-go's elector compares records with times cut to whole seconds. A renewal in the second of
// the one before would be none to it, and it would take the Lease up to a second early. So each
// gets a second of its own. Where renewals come more than once a second as a rule, which they may
// with a TTL below often, that would run away from the clock; there the Lease lasts a second longer
// instead.
const often = 4 * time.Second

// durationSeconds returns for how long client-go's elector has to leave the Lease alone after it
// saw it change.
func durationSeconds(rec store.Record) int32 {
	switch {
	case rec.Session != "":
		// Renewed elsewhere, which the elector can't see, until it is touched.
		return int32(store.MaxTTL / time.Second)
	case rec.Owner == "":
		return 1 // as client-go writes it
	}
	return wholeSeconds(rec.TTL)
}

// wholeSeconds returns for how long an elector has to leave a Lease alone that is renewed for that
// TTL.
func wholeSeconds(ttl time.Duration) int32 {
	seconds := int32((ttl + time.Second - 1) / time.Second)
	if ttl < often {
		seconds++
	}
	return seconds
}

// renewTime returns the time of a renewal now, after one in that Unix second: a little ahead of the
// clock if need be.
func renewTime(now time.Time, before int64) time.Time {
	const ahead = 30 // a clock that was set back by more is no reason to go on ahead
	if next := before + 1; now.Unix() < next && next <= now.Unix()+ahead {
		return time.Unix(next, 0).UTC()
	}
	return now
}
