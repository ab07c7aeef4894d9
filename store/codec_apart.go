package store

import (
	"fmt"
	"slices"
)

// MarshalApart is [Marshal] without Past, for engines that keep the terms apart. It checks all of rec, and the size of the
// whole.
func MarshalApart(rec Record) ([]byte, error) {
	if err := Check(rec); err != nil {
		return nil, err
	}
	rec.Past = nil
	return appendRecord(make([]byte, 0, sizeHint(rec)), rec), nil
}

// MarshalTerm returns a term of a record that MarshalApart took, as JSON.
func MarshalTerm(t Term) []byte {
	const numbers = 64
	return appendTerm(make([]byte, 0, numbers+len(t.Owner)+len(t.Why)), t, nil)
}

// UnmarshalApart is [Unmarshal] for what MarshalApart wrote and the terms of Past, the newest first, each as MarshalTerm wrote
// it. Without terms, Past is what b has, if any.
func UnmarshalApart(b []byte, terms []string) (Record, error) {
	rec, err := Unmarshal(b)
	if err != nil || len(terms) == 0 {
		return rec, err
	}
	if len(terms) > MaxPast {
		return Record{}, fmt.Errorf("%d terms: want at most %d", len(terms), MaxPast)
	}
	whole := []byte(`{"v":1,"token":0,"past":[`)
	for i, t := range terms {
		if i > 0 {
			whole = append(whole, ',')
		}
		whole = append(whole, t...)
	}
	past, err := Unmarshal(append(whole, `]}`...))
	if err != nil {
		return Record{}, fmt.Errorf("ended terms: %w", err)
	}
	if len(past.Past) != len(terms) {
		return Record{}, fmt.Errorf("ended terms: %d where there should be %d", len(past.Past), len(terms))
	}
	rec.Past = slices.Clip(past.Past)
	rec.Key = "?"
	if len(b)+len(whole) > MaxRecord/8 { // as in Unmarshal
		if _, err := Marshal(rec); err != nil {
			return Record{}, err
		}
	}
	rec.Key = ""
	return rec, nil
}
