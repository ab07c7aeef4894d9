package election

import (
	"fmt"

	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

const (
	maxText   = 255 // bytes of a candidate's name and zone
	maxReason = 500 // bytes of who paused, and why
	maxPauses = 10
)

func checkName(name string) error {
	if err := driver.CheckKey(ballot.Prefix + name); err != nil || name == "" || keyspace.Reserved(name) {
		want := fmt.Sprintf("the name of an election: 1 to %d bytes of printable UTF-8 that don't begin with a dot", store.MaxKey-len(ballot.Prefix))
		return &store.InvalidError{Field: "name", Value: fmt.Sprintf("%.60q", name), Want: want}
	}
	return nil
}
