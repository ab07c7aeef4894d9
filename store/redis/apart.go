package redis

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// marshalApart is [driver.Marshal] without Past: the terms have fields of their own. It checks all
// of rec, and the size of the whole.
func marshalApart(rec store.Record) ([]byte, error) {
	if err := driver.Check(rec); err != nil {
		return nil, err
	}
	rec.Past = nil
	return driver.Marshal(rec)
}

// unmarshalApart is [driver.Unmarshal] for what marshalApart wrote and the terms of Past, the
// newest first, each as [driver.MarshalTerm] wrote it. Without terms, Past is what b has, if any.
func unmarshalApart(b []byte, terms []string) (store.Record, error) {
	rec, err := driver.Unmarshal(b)
	if err != nil || len(terms) == 0 {
		return rec, err
	}
	if len(terms) > store.MaxPast {
		return store.Record{}, fmt.Errorf("%d terms: want at most %d", len(terms), store.MaxPast)
	}
	whole := []byte(`{"v":1,"token":0,"past":[`)
	for i, t := range terms {
		if i > 0 {
			whole = append(whole, ',')
		}
		whole = append(whole, t...)
	}
	past, err := driver.Unmarshal(append(whole, `]}`...))
	if err != nil {
		return store.Record{}, fmt.Errorf("ended terms: %w", err)
	}
	if len(past.Past) != len(terms) {
		return store.Record{}, fmt.Errorf("ended terms: %d where there should be %d", len(past.Past), len(terms))
	}
	rec.Past = slices.Clip(past.Past)
	rec.Key = "?"
	if len(b)+len(whole) > store.MaxRecord/8 { // as in driver.Unmarshal
		if _, err := driver.Marshal(rec); err != nil {
			return store.Record{}, err
		}
	}
	rec.Key = ""
	return rec, nil
}
