package server

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type description struct {
	Tags       []struct{ Name string }   `yaml:"tags"`
	Paths      map[string]map[string]any `yaml:"paths"`
	Components struct {
		Schemas    map[string]map[string]any `yaml:"schemas"`
		Parameters map[string]map[string]any `yaml:"parameters"`
	} `yaml:"components"`
}

func describe(t *testing.T) description {
	t.Helper()
	var d description
	if err := yaml.Unmarshal(openAPI, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// The description has the operations that the server has, and no others.
func TestDescribedOperations(t *testing.T) {
	described, served := map[string]string{}, map[string]string{}
	for path, operations := range describe(t).Paths {
		for method, op := range operations {
			if fields, ok := op.(map[string]any); ok {
				described[strings.ToUpper(method)+" "+path], _ = fields["x-operation"].(string)
			}
		}
	}
	for _, rt := range routes {
		served[rt.method+" "+rt.path] = rt.op
	}
	if !reflect.DeepEqual(described, served) {
		t.Errorf("described: %v\nserved: %v", described, served)
	}
}

// What generators make a client of: each operation has an identifier that is no word of a language, and one tag that is described; an enum
// has a type, and holds nothing but texts; nothing is a choice of several objects.
func TestFinding_V4_GeneratorsTakeTheDescription(t *testing.T) {
	d := describe(t)
	tags := map[string]bool{}
	for _, tag := range d.Tags {
		tags[tag.Name] = true
	}
	seen, words := map[string]bool{}, []string{"break", "import", "release", "list", "assert", "yield", "delete"}
	for path, operations := range d.Paths {
		for method, op := range operations {
			fields, ok := op.(map[string]any)
			if !ok {
				continue
			}
			id, _ := fields["operationId"].(string)
			if !regexp.MustCompile(`^[a-z][A-Za-z]+$`).MatchString(id) || slices.Contains(words, id) || seen[strings.ToLower(id)] {
				t.Errorf("%s %s: operationId %q: want an identifier that no other has", method, path, id)
			}
			seen[strings.ToLower(id)] = true
			if of, _ := fields["tags"].([]any); len(of) != 1 || !tags[fmt.Sprint(of[0])] {
				t.Errorf("%s: tags %v: want one of %v", id, fields["tags"], d.Tags)
			}
		}
	}
	for name := range d.Components.Parameters {
		for other := range d.Components.Schemas {
			if strings.EqualFold(name, other) {
				t.Errorf("the parameter %s and the schema %s have one name", name, other)
			}
		}
	}
	var all any
	if err := yaml.Unmarshal(openAPI, &all); err != nil {
		t.Fatal(err)
	}
	generated(t, "", all)
}

// generated looks at a part of the description.
func generated(t *testing.T, at string, part any) {
	switch part := part.(type) {
	case []any:
		for i, p := range part {
			generated(t, fmt.Sprintf("%s[%d]", at, i), p)
		}
	case map[string]any:
		if values, is := part["enum"].([]any); is && (part["type"] != "string" || slices.ContainsFunc(values, func(v any) bool { _, text := v.(string); return !text })) {
			t.Errorf("%s: enum %v of type %v: want texts, of type string", at, values, part["type"])
		}
		choices, _ := part["anyOf"].([]any)
		for _, c := range choices {
			if c, _ := c.(map[string]any); c["properties"] != nil || c["required"] != nil {
				t.Errorf("%s: a choice of objects, which generators lose: %v", at, c)
			}
		}
		for name, p := range part {
			generated(t, at+"."+name, p)
		}
	}
}

// The description has the query parameters that the server knows, and no others.
func TestFinding_O4_DescribedQueries(t *testing.T) {
	d := describe(t)
	for _, rt := range routes {
		var described []string
		for _, of := range []any{d.Paths[rt.path]["parameters"], d.Paths[rt.path][strings.ToLower(rt.method)].(map[string]any)["parameters"]} {
			all, _ := of.([]any)
			for _, p := range all {
				fields := p.(map[string]any)
				if ref, ok := fields["$ref"].(string); ok {
					fields = d.Components.Parameters[strings.TrimPrefix(ref, "#/components/parameters/")]
				}
				if fields["in"] == "query" {
					described = append(described, fields["name"].(string))
				}
			}
		}
		known := slices.Sorted(slices.Values(rt.query))
		if slices.Sort(described); !slices.Equal(described, known) {
			t.Errorf("%s %s: described %v, known %v", rt.method, rt.path, described, known)
		}
	}
}
