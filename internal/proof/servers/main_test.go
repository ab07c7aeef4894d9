package servers

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// orphansOf has this program start the servers named in it, instead of running tests, and print their pids and folders.
const orphansOf = "LEASEHOLD_TEST_ORPHANS_OF"

func TestMain(m *testing.M) {
	if names := os.Getenv(orphansOf); names != "" {
		for name := range strings.SplitSeq(names, " ") {
			s, err := Launch(context.Background(), name, os.Getenv("LEASEHOLD_TEST_ORPHANS_DIR"))
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Println(s.process.pid, s.Dir)
		}
		fmt.Println("started")
		select {}
	}
	goleak.VerifyTestMain(Main(m))
}
