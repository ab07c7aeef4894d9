package dynamotables

import (
	"context"
	"testing"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// companions is a store that claims a record which nobody holds by two writes: the suite allows such a one an unknown outcome more.
type companions struct{ *Store }

func (companions) ClaimsInTwoWrites() {}

// The AWS lock client's schema is tried in its harder form, with a sort key and names of its own: the other differs in nothing
// that the suite could see.
func TestConformance(t *testing.T) {
	for _, name := range []string{"admiral", "dynamodb-lease", "aws-lock-client/dynamolock"} {
		k := kindOf(t, name)
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t testing.TB) storetest.Instance {
				srv := servers.DynamoDB(t, servers.Shared())
				name := makeTable(t, testClient(t, srv.URL), k)
				network := servers.Proxy(t, srv.Addr)
				return storetest.Instance{
					Open: func(context.Context) (store.Store, error) {
						s, err := k.open(testClient(t, "http://"+network.Addr), name)
						return companions{s}, err
					},
					Slow: true, Pushes: true,
					Cut:  func() error { network.Cut(); return nil },
					Heal: func() error { network.Heal(); return nil },
				}
			})
		})
	}
}
