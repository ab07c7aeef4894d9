package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Properties implements [store.Describer]. It returns what this engine guarantees.
func (s *Store) Properties() store.Properties {
	return store.Properties{
		Engine:      "file",
		Consistency: "linearizable: one writer at a time, each write synced before it is acknowledged",
		Fencing:     store.FencingLinearizable,
		Read:        store.ReadDurable,
		Settle:      store.SettledByRead,
		Push:        true,
		Age:         s.life != nil && s.space != "",
		Guarantee:   "for all processes of one kernel, containers included, over crashes and reboots",
	}
}

// little is so little free space that a write may soon fail.
const little = 64 << 20

// Inspect looks at the file and at the space that is left to it.
func (s *Store) Inspect(context.Context) []driver.Finding {
	return append(s.inspectFile(), s.inspectProof())
}

// inspectProof says what is known of holders that have died.
func (s *Store) inspectProof() driver.Finding {
	f := driver.Finding{What: "killed holders", Status: driver.StatusOK, Detail: "the kernel tells of their end: their names are free at once"}
	if s.life == nil {
		f.Detail = "nothing proves their end on this system and file system: their names are free after their TTL"
	}
	return f
}

func (s *Store) inspectFile() []driver.Finding {
	f := driver.Finding{What: "file", Status: driver.StatusOK, Detail: s.path}
	info, err := os.Stat(s.path)
	if err != nil {
		f.Status, f.Detail, f.Advice = driver.StatusFail, err.Error(), "it was there when it was opened: who removes it?"
		return []driver.Finding{f}
	}
	f.Detail += fmt.Sprintf(", %v", info.Mode().Perm())
	if free, ok := freeSpace(filepath.Dir(s.path)); ok {
		f.Detail += fmt.Sprintf(", %d MiB free", free>>20)
		if free < little {
			f.Status, f.Advice = driver.StatusWarn, "make room: leases run out when they can't be renewed"
		}
	}
	perm := info.Mode().Perm()
	switch {
	case runtime.GOOS == "windows": // it has no such modes
	case perm&0o002 != 0:
		f.Status, f.Advice = driver.StatusWarn, "every user may write to it, and so free any name: chmod o-w"
	case s.shared:
		f.Detail += ", shared by its group"
	case perm&0o020 != 0:
		f.Status, f.Advice = driver.StatusWarn, "its group may write to it, and so free any name: add ?group=GROUP to the store's URL if the group shares it; otherwise chmod g-w"
	}
	return []driver.Finding{f}
}
