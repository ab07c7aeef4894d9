package server

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	typedef  = regexp.MustCompile(`(?m)^ \* @typedef \{object\} (\w+).*\n((?: \* @property .*\n)+)`)
	property = regexp.MustCompile(`@property \{([^}]*)\} (\[?)(\w+)`)
)

// The page's own words for what it reads are those of the types: its fields are there, may be absent where they may, and are of that type.
func TestPageReadsTheTypes(t *testing.T) {
	read := map[string][]string{"web/ui/model.js": {"Lease", "Share", "Pause", "Candidate"}, "web/ui/lanes.js": {"Term"}}
	for file, types := range read {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, d := range typedef.FindAllStringSubmatch(string(text), -1) {
			found[d[1]] = d[2]
		}
		for _, name := range types {
			i := slices.IndexFunc(objects, func(o object) bool { return o.of.Name() == name })
			if i < 0 || found[name] == "" {
				t.Fatalf("%s: no %s", file, name)
			}
			members := membersOf(objects[i].of)
			for _, p := range property.FindAllStringSubmatch(found[name], -1) {
				at := slices.IndexFunc(members, func(m member) bool { return m.name == p[3] && m.on != "command" })
				if at < 0 {
					t.Errorf("%s: %s.%s is not sent", file, name, p[3])
					continue
				}
				if m := members[at]; m.required != (p[2] == "") || !fitsScript(p[1], jsonType(m.of)) {
					t.Errorf("%s: %s.%s is {%s}, optional %v; it is sent as %s, required %v", file, name, p[3], p[1], p[2] != "", jsonType(m.of), m.required)
				}
			}
		}
	}
}

// fitsScript reports whether a type of a script is that of JSON.
func fitsScript(script, sent string) bool {
	switch script {
	case "string", "boolean":
		return sent == script
	case "number":
		return sent == "number" || sent == "integer"
	}
	return strings.HasSuffix(script, "[]") == (sent == "array") && (sent == "array" || sent == "object")
}
