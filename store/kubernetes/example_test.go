package kubernetes_test

import (
	"context"
	"log"

	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/kubernetes"
)

// Hold a name in a pod, as a Lease object in the namespace billing. Role prints the permissions that it needs.
func ExampleNew() {
	ctx := context.Background()
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.Client(config)
	if err != nil {
		log.Fatal(err)
	}
	st, err := kubernetes.New(client, kubernetes.Options{Namespace: "billing"})
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
