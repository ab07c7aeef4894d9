package id

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

// readAssigned reads who has which value: {"node": value}, or the answer of a search of Chef's.
// Path may be - for standard input.
func (a *app) readAssigned(path string) (map[string]string, error) {
	text, err := a.readFile(path)
	if err != nil {
		return nil, cli.Usage("FILE: %w", err)
	}
	all, err := assigned(text)
	if err != nil {
		return nil, cli.Usage("FILE %s: %w", path, err)
	}
	return all, nil
}

// readNames reads which machines there are: ["node"], or anything that readAssigned reads.
func (a *app) readNames(path string) (map[string]bool, error) {
	text, err := a.readFile(path)
	if err != nil {
		return nil, cli.Usage("FILE: %w", err)
	}
	names := map[string]bool{}
	var list []string
	if json.Unmarshal(text, &list) == nil {
		for _, name := range list {
			names[name] = true
		}
	} else {
		all, err := assigned(text)
		if err != nil {
			return nil, cli.Usage("FILE %s: %w; or a list, [\"node\"]", path, err)
		}
		for name := range all {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return nil, cli.Usage("FILE %s: it has no machines, so that every value would be freed: see what wrote it", path)
	}
	return names, nil
}

func (a *app) readFile(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(a.In)
	}
	return os.ReadFile(path)
}

// member is one of an object, whose members may have the same name twice.
type member struct {
	name  string
	value json.RawMessage
}

// members reads an object, in its order.
func members(text []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errors.New(`want a JSON object, {"node": value}`), err)
	}
	var all []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("want a JSON object: %w", err)
		}
		m := member{}
		m.name, _ = name.(string) // an object's names are
		err = d.Decode(&m.value)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, fmt.Errorf("%.60q: %w", m.name, err)
		}
		all = append(all, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("want a JSON object: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("want one JSON object and nothing behind it")
	}
	return all, nil
}

// assigned reads who has which value.
func assigned(text []byte) (map[string]string, error) {
	all, err := members(text)
	if err != nil {
		return nil, err
	}
	var rows []json.RawMessage
	for _, m := range all { // {"results": 2, "rows": [{"node": {"attribute": value}}, …]}
		if m.name == "rows" && json.Unmarshal(m.value, &rows) == nil {
			return searched(rows)
		}
	}
	values := map[string]string{}
	for _, m := range all {
		if err := note(values, m); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// searched reads the rows of a search of Chef's, each of which has one attribute of one node.
func searched(rows []json.RawMessage) (map[string]string, error) {
	values := map[string]string{}
	for i, row := range rows {
		node, err := members(row)
		if err != nil || len(node) != 1 {
			return nil, fmt.Errorf(`row %d: want {"node": {"attribute": value}}`, i+1)
		}
		attributes, err := members(node[0].value)
		if err != nil || len(attributes) != 1 {
			return nil, fmt.Errorf("row %d, %.60q: want one attribute: search with -a ATTRIBUTE", i+1, node[0].name)
		}
		if err := note(values, member{node[0].name, attributes[0].value}); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// note notes which value a node has.
func note(values map[string]string, m member) error {
	if _, twice := values[m.name]; twice {
		return fmt.Errorf("%.60q is there twice", m.name)
	}
	d := json.NewDecoder(bytes.NewReader(m.value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("%.60q: %w", m.name, err)
	}
	switch v := v.(type) {
	case nil:
		values[m.name] = ""
	case string:
		values[m.name] = v
	case json.Number:
		values[m.name] = v.String()
	default:
		return fmt.Errorf("%.60q: %.60s: want a number, a string or null", m.name, m.value)
	}
	return nil
}
