package dynamotables_test

import (
	"context"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/dynamodb/dynamotables"
)

// Hold a name in Admiral's own table, so that old and new instances keep each other out while a team moves over.
func ExampleAdmiral() {
	ctx := context.Background()
	var client *dynamodb.Client // dynamodb.NewFromConfig makes it
	st, err := dynamotables.Admiral(client, dynamotables.AdmiralOptions{
		Table: "admiral-lease", Wait: 15 * time.Second, Threshold: 3, // as in the configuration of those instances
	})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	err = m.Run(ctx, "billing", func(_ context.Context, l *lease.Lease) error {
		log.Print("we hold billing, with token ", l.Token())
		return nil
	})
	log.Print(err)
}
