package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/fence"
)

// wire is a record as engines that store bytes keep it. Fields are only ever added; readers ignore those they don't know.
type wire struct {
	Format   int               `json:"v"`
	Owner    string            `json:"owner,omitempty"`
	Token    fence.Token       `json:"token"`
	TTL      string            `json:"ttl,omitempty"` // a Go duration: exact, and readable
	Session  string            `json:"session,omitempty"`
	Acquired *time.Time        `json:"acquired,omitempty"`
	Mark     Mark              `json:"mark,omitempty"`
	Note     string            `json:"note,omitempty"`
	Info     map[string]string `json:"info,omitempty"`
	Past     []wireTerm        `json:"past,omitempty"`
	Data     []byte            `json:"data,omitempty"`
	Nonce    string            `json:"nonce,omitempty"`
}

type wireTerm struct {
	Owner string      `json:"owner"`
	Token fence.Token `json:"token"`
	From  time.Time   `json:"from"`
	Until time.Time   `json:"until"`
	Why   string      `json:"why,omitempty"`
}

const format = 1

// Marshal returns rec as JSON, without Key, Version and Age: those are the engine's. It fails with an *[InvalidError] when
// no store would take the record, [MaxRecord] included.
func Marshal(rec Record) ([]byte, error) {
	if err := checkFields(rec); err != nil {
		return nil, err
	}
	w := wire{
		Format: format, Owner: rec.Owner, Token: rec.Token, Session: rec.Session, Mark: rec.Mark, Note: rec.Note,
		Info: rec.Info, Data: rec.Data, Nonce: rec.Nonce,
	}
	if rec.TTL != 0 {
		w.TTL = rec.TTL.String()
	}
	if !rec.Acquired.IsZero() {
		at := rec.Acquired.UTC()
		w.Acquired = &at
	}
	for _, t := range rec.Past {
		w.Past = append(w.Past, wireTerm{t.Owner, t.Token, t.From.UTC(), t.Until.UTC(), t.Why})
	}
	b, err := json.Marshal(w)
	if err != nil { // nothing that passed the checks
		return nil, &InvalidError{Field: "record", Value: err.Error(), Want: "what JSON can hold"}
	}
	if len(b) > MaxRecord {
		return nil, &InvalidError{Field: "record", Value: fmt.Sprintf("of %d bytes", len(b)), Want: fmt.Sprintf("at most %d: shorten Info or Data", MaxRecord)}
	}
	return b, nil
}

// Unmarshal reads what Marshal wrote. The caller sets Key, Version and Age. Whatever the bytes are, it returns a record
// that Marshal would write, or an error.
func Unmarshal(b []byte) (Record, error) {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return Record{}, err
	}
	if w.Format != format {
		return Record{}, fmt.Errorf("record format %d: this version reads format %d", w.Format, format)
	}
	rec := Record{
		Key: "?", Owner: w.Owner, Token: w.Token, Session: w.Session, Mark: w.Mark, Note: w.Note,
		Info: w.Info, Data: w.Data, Nonce: w.Nonce,
	}
	if w.TTL != "" {
		ttl, err := time.ParseDuration(w.TTL)
		if err != nil {
			return Record{}, errors.New("ttl: " + err.Error())
		}
		rec.TTL = ttl
	}
	if w.Acquired != nil {
		rec.Acquired = w.Acquired.UTC()
	}
	for _, t := range w.Past {
		rec.Past = append(rec.Past, Term{t.Owner, t.Token, t.From.UTC(), t.Until.UTC(), t.Why})
	}
	if err := checkFields(rec); err != nil {
		return Record{}, err
	}
	// Bytes that somebody else wrote may grow when Marshal writes them: a < sixfold, eight empty terms to 90 bytes each.
	if len(b) > MaxRecord/8 {
		if _, err := Marshal(rec); err != nil {
			return Record{}, err
		}
	}
	rec.Key = ""
	return rec, nil
}
