package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// wire is a record as engines that store bytes keep it. Fields are only ever added; readers ignore
// those they don't know. appendRecord writes it, and readRecord reads what that wrote, both without
// reflection: each write of a lease passes here.
type wire struct {
	Format   int                `json:"v"`
	Owner    string             `json:"owner,omitempty"`
	Token    fence.Token        `json:"token"`
	TTL      string             `json:"ttl,omitempty"` // a Go duration: exact, and readable
	Session  string             `json:"session,omitempty"`
	Acquired *time.Time         `json:"acquired,omitempty"`
	Mark     store.Intervention `json:"mark,omitempty"`
	Note     string             `json:"note,omitempty"`
	Kind     store.Kind         `json:"kind,omitempty"`
	Info     map[string]string  `json:"info,omitempty"`
	Past     wirePast           `json:"past,omitempty"`
	Data     []byte             `json:"data,omitempty"`
	Nonce    string             `json:"nonce,omitempty"`
}

const format = 1

// Marshal returns rec as JSON, without Key, Version and Age, which the engine keeps in its own way.
// It returns an *[store.InvalidError] for a record that [Check] refuses.
func Marshal(rec store.Record) ([]byte, error) {
	if err := checkFields(rec); err != nil {
		return nil, err
	}
	b := appendRecord(make([]byte, 0, sizeHint(rec)), rec)
	if len(b) > store.MaxRecord {
		return nil, &store.InvalidError{Field: "record", Value: fmt.Sprintf("of %d bytes", len(b)), Want: fmt.Sprintf("at most %d: shorten Info or Data", store.MaxRecord)}
	}
	return b, nil
}

// Canonical returns rec, which passed [Check], as Unmarshal will read it: times in UTC, nil for
// what is empty. It keeps Key, and clears Version and Age. The result shares no memory with rec
// that can be written to. With Canonical, a Put returns what a Get will, without reading the
// record.
func Canonical(rec store.Record) store.Record {
	rec.Version, rec.Age = "", 0
	rec.Acquired = rec.Acquired.UTC()
	if len(rec.Info) == 0 {
		rec.Info = nil
	}
	if len(rec.Past) == 0 {
		rec.Past = nil
	}
	if len(rec.Data) == 0 {
		rec.Data = nil
	}
	rec.Info, rec.Past, rec.Data = maps.Clone(rec.Info), slices.Clone(rec.Past), slices.Clone(rec.Data)
	for i := range rec.Past {
		t := &rec.Past[i]
		t.From, t.Until = t.From.UTC(), t.Until.UTC()
	}
	return rec
}

// Unmarshal reads what [Marshal] wrote. The caller sets Key, Version and Age. Whatever the bytes
// are, Unmarshal returns a record that Marshal takes, or an error.
func Unmarshal(b []byte) (store.Record, error) {
	rec, ok := readRecord(b)
	if !ok {
		var err error
		if rec, err = readAny(b); err != nil {
			return store.Record{}, err
		}
	}
	rec.Key = "?"
	if err := checkFields(rec); err != nil {
		return store.Record{}, err
	}
	// Bytes that another program wrote may grow when Marshal writes them: a < sixfold, eight empty
	// terms to 30 bytes each.
	if len(b) > store.MaxRecord/8 {
		if _, err := Marshal(rec); err != nil {
			return store.Record{}, err
		}
	}
	rec.Key = ""
	return rec, nil
}

// readAny reads a record in any form that JSON allows.
func readAny(b []byte) (store.Record, error) {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return store.Record{}, err
	}
	if w.Format != format {
		return store.Record{}, fmt.Errorf("record format %d: this version reads format %d", w.Format, format)
	}
	rec := store.Record{
		Owner: w.Owner, Token: w.Token, Session: w.Session, Intervention: w.Mark, Note: w.Note, Kind: w.Kind,
		Info: w.Info, Past: w.Past, Data: w.Data, Nonce: w.Nonce,
	}
	if w.TTL != "" {
		ttl, err := time.ParseDuration(w.TTL)
		if err != nil {
			return store.Record{}, errors.New("ttl: " + err.Error())
		}
		rec.TTL = ttl
	}
	if w.Acquired != nil {
		rec.Acquired = w.Acquired.UTC()
	}
	return rec, nil
}
