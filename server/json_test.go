package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/proof/golden"
)

var update = flag.Bool("update", false, "write the tables of docs/json.md anew")

// docs/json.md has a table for each object, made of the types and of what their source says of each field.
func TestJSONTable(t *testing.T) {
	s := sourceOf(t)
	var text bytes.Buffer
	for _, o := range objects {
		s.render(&text, o)
	}
	golden.Check(t, "../docs/json.md", "objects", "go test ./server -run TestJSONTable -update", text.Bytes(), *update)
}

// render writes the table of an object.
func (s source) render(w *bytes.Buffer, o object) {
	name := o.of.Name()
	fmt.Fprintf(w, "\n### %s\n\n%s\nIn the JSON of %s.", name, strings.ReplaceAll(s.docs[name], "[store.Marshal]", "as it is stored"), o.on)
	for f := range o.of.Fields() {
		if f.Anonymous {
			fmt.Fprintf(w, " It has the fields of %s, and these:", typeText(f.Type))
		}
	}
	fmt.Fprint(w, "\n\n| field | type | unit or values | where | meaning |\n|---|---|---|---|---|\n")
	for _, m := range membersOf(o.of) {
		if m.in != o.of {
			continue // it is in the other table
		}
		where := map[string]string{"": "both", "command": "command", "http": "HTTP"}[m.on]
		if o.on != onBoth {
			where = map[string]string{onHTTP: "HTTP", onCommand: "command"}[o.on]
		}
		absent := "?"
		if m.required {
			absent = ""
		}
		meaning := strings.ReplaceAll(s.fields[m.in.Name()][m.field], "|", `\|`)
		fmt.Fprintf(w, "| `%s` | %s%s | %s | %s | %s |\n", m.name, typeText(m.of), absent, s.unit(m), where, strings.TrimSuffix(meaningOf(meaning, m.field), "."))
	}
}

// meaningOf takes the name in Go off what is said of a field, and a first letter that is large since a sentence begins there.
func meaningOf(meaning, field string) string {
	for _, verb := range []string{" is ", " are "} {
		meaning = strings.TrimPrefix(meaning, field+verb)
	}
	if first, rest, ok := strings.Cut(meaning, " "); ok && (first != strings.ToUpper(first) || first == "A") {
		meaning = strings.ToLower(first) + " " + rest
	}
	return meaning
}

// typeText says what a type is in JSON, for people.
func typeText(of reflect.Type) string {
	switch kind := jsonType(of); {
	case isObject(of):
		return fmt.Sprintf("[%s](#%s)", of.Name(), strings.ToLower(of.Name()))
	case of == reflect.TypeFor[time.Time]():
		return "time"
	case of == reflect.TypeFor[api.Seconds]():
		return "duration"
	case of == reflect.TypeFor[fence.Token]():
		return "token"
	case of == reflect.TypeFor[json.RawMessage]():
		return "object"
	case kind == "array":
		return "list of " + typeText(of.Elem())
	case of.Kind() == reflect.Map:
		return "object of " + typeText(of.Elem())
	case kind == "string":
		return "text"
	default:
		return kind
	}
}

// mostValues is how many values a table names.
const mostValues = 10

// unit says what a field is counted in, or what it may be.
func (s source) unit(m member) string {
	switch all := s.valuesOf(m); {
	case len(all) > mostValues:
		return "see [the server](server.md)"
	case len(all) > 0:
		return "`" + strings.Join(all, "`, `") + "`"
	case m.of == reflect.TypeFor[time.Time]():
		return "RFC 3339"
	case m.of == reflect.TypeFor[api.Seconds]():
		return "seconds"
	case m.of == reflect.TypeFor[time.Duration]():
		return "nanoseconds"
	case m.of == reflect.TypeFor[fence.Token]():
		return "below 2^53"
	}
	return ""
}
