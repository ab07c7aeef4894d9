package supervise

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == GuardArg { // this binary is its own guard, too
		GuardMain()
		return
	}
	goleak.VerifyTestMain(m)
}
