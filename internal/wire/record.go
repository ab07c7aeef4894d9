package wire

import (
	"encoding/json"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// RecordLine is a record of the store, as GET and PUT /v1/records send it, and a line of their list.
type RecordLine struct {
	Key     string          `json:"key,omitempty"`
	Version string          `json:"version,omitempty"`
	Age     time.Duration   `json:"age,omitempty"` // nanoseconds, when it was sent: see [store.Record.Age]
	Record  json.RawMessage `json:"record,omitempty"`
	Problem *Problem        `json:"problem,omitempty"` // a list broke off
	End     bool            `json:"end,omitempty"`     // a list is complete
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
