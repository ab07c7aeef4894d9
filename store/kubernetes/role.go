package kubernetes

import "fmt"

// Role returns, as YAML for kubectl apply, the smallest Role that a program needs to keep leases in
// namespace. name is the Role's own. Without list, only Store.List fails; without watch, Wait;
// without delete, Delete and a part of Inspect. The Role has no resourceNames: they can't restrict
// who may create a Lease.
func Role(namespace, name string) string {
	return fmt.Sprintf(`# Bind it to the program's account:
#   kubectl --namespace %[2]s create rolebinding %[1]s --role=%[1]s --serviceaccount=%[2]s:ACCOUNT
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: %[1]q
  namespace: %[2]q
rules:
- apiGroups: ["coordination.k8s.io"]
  resources: ["leases"]
  verbs: ["get", "list", "watch", "create", "patch", "delete"]
`, name, namespace)
}
