package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/file"
)

func TestSweep(t *testing.T) {
	scriptsIn(t, "sweep", map[string]string{"LEASEHOLD_STORE": "file:" + filepath.Join(t.TempDir(), "leases.db")})
}

// oldName writes the record of a name that was held and freed 40 days ago.
func oldName() {
	then := clock.System().Wall().Add(-40 * 24 * time.Hour)
	ctx := context.Background()
	st, err := file.Open(ctx, strings.TrimPrefix(os.Getenv("LEASEHOLD_STORE"), "file:"), file.Options{})
	if err == nil {
		token := fence.Token(then.UnixMilli())
		_, err = st.Put(ctx, store.Record{
			Key: os.Args[1], Token: token, Nonce: "n",
			Past: []store.Term{{Owner: "somebody", Token: token, From: then, Until: then, Why: "released"}},
		})
		err = errors.Join(err, st.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
