package main

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// The page for those who come from client-go names each field that these versions have.
func TestPageNamesEveryField(t *testing.T) {
	text, err := os.ReadFile("../../docs/from-client-go.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of    reflect.Type
		about []string // what the names of the fields begin with, of a type that has others
	}{
		{of: reflect.TypeFor[leaderelection.LeaderElectionConfig]()},
		{of: reflect.TypeFor[leaderelection.LeaderCallbacks]()},
		{of: reflect.TypeFor[resourcelock.ResourceLockConfig]()},
		{of: reflect.TypeFor[manager.Options](), about: []string{"Leader", "Lease", "Renew", "Retry", "Graceful"}},
	} {
		named := 0
		for f := range c.of.Fields() {
			about := len(c.about) == 0
			for _, begin := range c.about {
				about = about || strings.HasPrefix(f.Name, begin)
			}
			if !about || !f.IsExported() {
				continue
			}
			if named++; !slices.ContainsFunc([]string{"`", "(", "."}, func(end string) bool { return strings.Contains(string(text), f.Name+end) }) {
				t.Errorf("docs/from-client-go.md doesn't name %v.%s", c.of, f.Name)
			}
		}
		if named == 0 {
			t.Errorf("%v has no such fields", c.of)
		}
	}
}
