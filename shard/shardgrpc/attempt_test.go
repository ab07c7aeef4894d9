package shardgrpc

import (
	"testing"

	"github.com/leasehold/leasehold/shard"
)

// A call whose key moves just as there is a connection is not sent, and not taken for sent: it is made again.
func TestACallThatEndedBeforeItWasSent(t *testing.T) {
	for _, moved := range []bool{true, false} {
		a := newAttempt(t.Context(), nil, "k0", shard.Route{Address: "a:1"})
		if moved {
			a.cancel()
		}
		if picked, sent := a.pick(), a.end(); picked == moved || sent == moved {
			t.Errorf("moved %t: picked %t, sent %t", moved, picked, sent)
		}
	}
}
