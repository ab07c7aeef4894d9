package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// line is a value in the file.
type line struct {
	text   string
	number int
}

// readFile reads the file: a mapping from the names of settings to plain values. Anything else is
// an error that names the line, and for an unknown key the known ones.
func readFile(settings []Setting, in Input) (map[string]line, error) {
	lines := map[string]line{}
	if in.Path == "" {
		return lines, nil
	}
	b, err := os.ReadFile(in.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !in.Must:
		return lines, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%sCONFIG: there is no file %s", EnvPrefix, in.Path)
	case err != nil:
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(b)).Decode(&doc); errors.Is(err, io.EOF) {
		return lines, nil // nothing but comments
	} else if err != nil {
		return nil, fmt.Errorf("%s: not YAML: %w", in.Path, err)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: want lines like `ttl: 20s`", in.Path)
	}
	pairs := doc.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		key, value := pairs[i], pairs[i+1]
		at := fmt.Sprintf("%s:%d", in.Path, key.Line)
		switch before, twice := lines[key.Value]; {
		case !known(settings, key.Value):
			return nil, fmt.Errorf("%s: unknown key %q: known are %s", at, key.Value, strings.Join(names(settings), ", "))
		case twice:
			return nil, fmt.Errorf("%s: %s is set a second time, after line %d", at, key.Value, before.number)
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			return nil, fmt.Errorf("%s: %s: want one plain value", at, key.Value)
		}
		lines[key.Value] = line{value.Value, key.Line}
	}
	return lines, nil
}

func known(settings []Setting, name string) bool {
	for _, s := range settings {
		if s.Name == name {
			return true
		}
	}
	return false
}

func names(settings []Setting) []string {
	var all []string
	for _, s := range settings {
		all = append(all, s.Name)
	}
	return all
}
