package fencekubernetes_test

import (
	"context"
	"log"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencekubernetes"
)

// Change a ConfigMap on condition that no later term has written to it.
func ExampleUpdate() {
	ctx := context.Background()
	var clientset *kubernetes.Clientset // the program's own
	var seq fence.Sequencer             // at the holder: l.Sequencer()

	_, err := fencekubernetes.Update(ctx, clientset.CoreV1().ConfigMaps("shop"), seq, "billing",
		func(cm *corev1.ConfigMap) error {
			cm.Data["balance"] = "70"
			return nil
		})
	if err != nil {
		log.Print(err) // a *fence.StaleError when a later term has begun: nothing is written
	}
}
