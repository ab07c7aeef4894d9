package api

import (
	"encoding/json"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// RecordLine is a record of the store, as GET and PUT /v1/records send it, and a line of their
// list.
type RecordLine struct {
	Key string `json:"key,omitempty"` // the key of the record
	// What tells it from every other state of the key.
	Version string `json:"version,omitempty"`
	// How old the record was when it was sent, in nanoseconds; absent when the store can't tell.
	Age     time.Duration   `json:"age,omitempty"`
	Record  json.RawMessage `json:"record,omitempty"`  // the record, as it is stored
	Problem *Problem        `json:"problem,omitempty"` // why the list broke off
	// True in the last line of a list that is complete.
	End bool `json:"end,omitempty"`
}

// NewRecordLine returns the line of a record.
func NewRecordLine(rec store.Record) (RecordLine, error) {
	text, err := driver.Marshal(rec)
	return RecordLine{Key: rec.Key, Version: rec.Version, Age: rec.Age, Record: text}, err
}

// Rec returns the record of a line.
func (l RecordLine) Rec() (store.Record, error) {
	rec, err := driver.Unmarshal(l.Record)
	if err != nil {
		return store.Record{}, driver.Corrupt(l.Key, err)
	}
	rec.Key, rec.Version, rec.Age = l.Key, l.Version, max(l.Age, 0)
	return rec, nil
}
