# shellcheck shell=bash
# Installs the Kubernetes API server for tests: a part of scripts/engines, which has the functions called here.

install_kubernetes() {
  local version
  version=$(awk '$1 == "k8s.io/kubernetes" || $2 == "k8s.io/kubernetes" { for (i = 1; i <= NF; i++) if ($i ~ /^v/) print $i }' \
    "$(recipe kubernetes)/go.mod")
  build kubernetes "-X k8s.io/component-base/version.gitVersion=$version" \
    kube-apiserver=k8s.io/kubernetes/cmd/kube-apiserver kubectl=k8s.io/kubernetes/cmd/kubectl
}
