package kubernetes

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/internal/keyspace"
)

// TestFinding_N2_NamesOfSessionsAreShort: of the object's name of a session, all but what separates its parts stands for itself.
func TestFinding_N2_NamesOfSessionsAreShort(t *testing.T) {
	const owner = "vm/15771/k3v9x2m5q8w1z"
	for range 20 {
		key := keyspace.SessionKey(owner, rand.Text()[:20])
		name := objectName(key)
		if want := "0--2esession--2fvm--2f15771--2fk3v9x2m5q8w1z--2f" + key[strings.LastIndex(key, "/")+1:]; name != want {
			t.Errorf("the session %s is the object %s, want %s", key, name, want)
		}
		if got := keyspace.OwnerOf(key); got != owner {
			t.Errorf("the owner of %s is %q", key, got)
		}
	}
	if old := ".session/" + owner + "/V3Q2ABCDEFGHIJKLMNOP"; keyspace.OwnerOf(old) != owner {
		t.Errorf("the owner of %s is %q", old, keyspace.OwnerOf(old))
	}
}
