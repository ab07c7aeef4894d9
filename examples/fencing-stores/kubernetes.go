package main

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencekubernetes"
)

const configMap = "fencing-example"

type kubernetesAccount struct {
	configMaps typedcore.ConfigMapInterface
}

func openKubernetes(ctx context.Context, kubeconfig string) (account, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	a := kubernetesAccount{clients.CoreV1().ConfigMaps("default")}
	if err := a.configMaps.Delete(ctx, configMap, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMap}, Data: map[string]string{"balance": "0"}}
	_, err = a.configMaps.Create(ctx, cm, metav1.CreateOptions{})
	return a, err
}

// Close has nothing to do: the client has no connections but those of net/http.
func (kubernetesAccount) Close() error { return nil }

func (a kubernetesAccount) deposit(ctx context.Context, s fence.Sequencer, amount int) error {
	_, err := fencekubernetes.Update(ctx, a.configMaps, s, configMap, func(cm *corev1.ConfigMap) error {
		n, err := strconv.Atoi(cm.Data["balance"])
		cm.Data["balance"] = strconv.Itoa(n + amount)
		return err
	})
	return err
}

func (a kubernetesAccount) balance(ctx context.Context) (int, error) {
	cm, err := a.configMaps.Get(ctx, configMap, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(cm.Data["balance"])
}
