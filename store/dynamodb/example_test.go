package dynamodb_test

import (
	"context"
	"log"

	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/dynamodb"
)

// Hold a name in a table of DynamoDB, through the program's own client.
func ExampleOpen() {
	ctx := context.Background()
	var client *awsdynamodb.Client                                       // awsdynamodb.NewFromConfig makes it
	if _, err := dynamodb.Create(ctx, client, "leasehold"); err != nil { // does nothing when it is there
		log.Fatal(err)
	}
	st, err := dynamodb.Open(ctx, client, "leasehold", dynamodb.Options{})
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
