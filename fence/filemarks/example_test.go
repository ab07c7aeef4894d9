package filemarks_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/filemarks"
)

// A guard remembers the highest token over a restart: it is in a file beside the data that it guards.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "filemarks-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	for _, token := range []fence.Token{42, 41} { // the resource is restarted between the two
		marks, err := filemarks.Open(filepath.Join(dir, "marks"))
		if err != nil {
			fmt.Println(err)
			return
		}
		guard, err := fence.NewOffline(marks)
		if err != nil {
			fmt.Println(err)
			return
		}
		err = guard.Check(ctx, fence.Sequencer{Name: "billing", Holder: "web-1", Token: token})
		fmt.Println(token, "is stale:", errors.Is(err, fence.ErrStale))
		if err := marks.Close(); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// 42 is stale: false
	// 41 is stale: true
}
