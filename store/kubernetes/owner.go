package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// shortLived are the owners that end while another one holds the name.
var shortLived = []string{"Pod", "ReplicaSet", "Job"}

// checkOwner returns why Leases can't be owned like that.
func checkOwner(o metav1.OwnerReference) error {
	group, err := schema.ParseGroupVersion(o.APIVersion)
	switch {
	case err != nil || group.Version == "":
		return fmt.Errorf("owner: apiVersion %.80q: want one such as apps/v1", o.APIVersion)
	case o.Kind == "":
		return fmt.Errorf(`owner: kind "": want one such as Deployment`)
	case slices.Contains(shortLived, o.Kind):
		return fmt.Errorf("owner: kind %s: want what outlives each holder, such as a Deployment: a Lease is deleted with its owner, even while another one holds it", o.Kind)
	case len(validation.IsDNS1123Subdomain(o.Name)) > 0:
		return fmt.Errorf("owner: name %.80q: want the name of a %s in the namespace", o.Name, o.Kind)
	case o.UID == "":
		return fmt.Errorf(`owner: uid "": want the metadata.uid of %s %s`, o.Kind, o.Name)
	}
	return nil
}

// lookForOwner returns an error where the server says that there is no such owner: the garbage
// collector would delete its Leases within seconds. Where the account may not look, nobody knows.
func (s *Store) lookForOwner(ctx context.Context) error {
	for _, o := range s.owners {
		group, err := schema.ParseGroupVersion(o.APIVersion)
		if err != nil {
			return err // New has parsed it
		}
		path := []string{"/apis", group.Group, group.Version}
		if group.Group == "" {
			path = []string{"/api", group.Version}
		}
		var known metav1.APIResourceList
		if err := s.getJSON(ctx, &known, path...); refused(err) && statusCode(err) != http.StatusNotFound {
			continue
		} else if err != nil {
			return fmt.Errorf("owner %s %s, of %s: %w", o.Kind, o.Name, o.APIVersion, err)
		}
		i := slices.IndexFunc(known.APIResources, func(r metav1.APIResource) bool { return r.Kind == o.Kind && r.Namespaced })
		if i < 0 {
			return fmt.Errorf("owner %s %s: %s has no %s that is in a namespace", o.Kind, o.Name, o.APIVersion, o.Kind)
		}
		var found metav1.PartialObjectMetadata
		err = s.getJSON(ctx, &found, append(path, "namespaces", s.namespace, known.APIResources[i].Name, o.Name)...)
		switch {
		case err == nil && found.UID != o.UID:
			return fmt.Errorf("owner %s %s: its uid is %s, not %.80s: see kubectl --namespace %s get %s %s -o jsonpath={.metadata.uid}",
				o.Kind, o.Name, found.UID, o.UID, s.namespace, known.APIResources[i].Name, o.Name)
		case statusCode(err) == http.StatusNotFound:
			return fmt.Errorf("owner %s %s: namespace %s has none of that name: %w", o.Kind, o.Name, s.namespace, err)
		case err != nil && !refused(err):
			return errors.Join(fmt.Errorf("owner %s %s could not be looked for", o.Kind, o.Name), s.explain("get", err))
		}
	}
	return nil
}

func (s *Store) getJSON(ctx context.Context, into any, path ...string) error {
	body, err := s.rest.Get().AbsPath(path...).SetHeader("Accept", "application/json").MaxRetries(0).DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
