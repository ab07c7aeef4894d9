package kubernetes

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/leasehold/leasehold/store"
)

// Labels are for people, who select Leases by them. They decide nothing.
const (
	labelManaged = "app.kubernetes.io/managed-by"
	labelKind    = "leasehold.dev/kind"

	managedBy = "leasehold"
)

// labels returns those that the write of a record puts on its Lease. A managed Lease has the first
// one, and keeps what others wrote there: Helm, say, leaves a release alone that isn't managed by
// Helm any more.
func labels(rec store.Record, managed bool) map[string]string {
	all := map[string]string{}
	if !managed {
		all[labelManaged] = managedBy
	}
	if kind := kindOf(rec); kind != "" && len(validation.IsValidLabelValue(kind)) == 0 {
		all[labelKind] = kind
	}
	return all
}

// kindOf returns what the name of a record is, or, of Leasehold's own records beside names, what
// they are of: ".session/a" is a session. The record beside an election, which has that kind, lists
// the candidates.
func kindOf(rec store.Record) string {
	own, beside := strings.CutPrefix(rec.Key, ".")
	if !beside {
		return string(rec.Kind)
	}
	kind, _, _ := strings.Cut(own, "/")
	if kind == string(store.KindElection) {
		return "candidates"
	}
	return kind
}
