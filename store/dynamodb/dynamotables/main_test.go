package dynamotables

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }
