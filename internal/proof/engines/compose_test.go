package engines

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const root = "../../.."

// composed is what compose.yaml may say, as far as it does.
type composed struct {
	Name     string
	Services map[string]struct {
		Image       string
		User        string
		Entrypoint  []string
		Command     []string
		Environment map[string]string
		Ports       []string
		Volumes     []string
		Healthcheck struct {
			Test     []string
			Interval string
			Retries  int
		}
		Configs   []struct{ Source, Target string }
		DependsOn map[string]struct{ Condition string } `yaml:"depends_on"`
	}
	Configs map[string]struct{ Content string }
	Volumes map[string]any
}

var (
	exported   = regexp.MustCompile(`(?m)^#   export LEASEHOLD_TEST_([A-Z]+)_URL='?([^'\n]+)`)
	portOf     = regexp.MustCompile(`127\.0\.0\.1:([0-9]+)`)
	testedRow  = regexp.MustCompile(`(?m)^\| ([a-z]+) \| ([0-9][0-9.]*) \|`)
	versionTag = regexp.MustCompile(`:v?([0-9][0-9.]*)(-[a-z]+)?$`)
)

// compose.yaml was never run where these tests are. What can be seen without Docker: it has what it refers to, a server of each engine that
// docs/engines.md names, of the version that was tested, at the port that its head tells tests of.
func TestFinding_O5_ComposeFitsTheDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range misfits(t, text, docs) {
		t.Error(problem)
	}
	for what, change := range map[string][2]string{
		"a key that Compose doesn't know": {`healthcheck: &`, `healthchek: &`},
		"another version":                 {`(image: \S+:v?)[0-9.]+`, `${1}0.1`},
		"a version that is cut off":       {`(image: [a-z]+:[0-9])[0-9]`, `$1`},
		"another port":                    {`(ports: \["127\.0\.0\.1:)[0-9]`, `${1}9`},
		"a service that isn't there":      {`(depends_on:\n +)`, `${1}no-`},
		"a volume that isn't there":       {`(volumes: \[")`, `${1}no-`},
		"an engine that is missing":       {`(services:\n +)`, `${1}no-`},
	} {
		changed := replaceFirst(text, change[0], change[1])
		if bytes.Equal(changed, text) || len(misfits(t, changed, docs)) == 0 {
			t.Errorf("%s isn't noticed", what)
		}
	}
}

// replaceFirst replaces the first match of a pattern.
func replaceFirst(text []byte, pattern, by string) []byte {
	re := regexp.MustCompile(pattern)
	at := re.FindSubmatchIndex(text)
	if at == nil {
		return text
	}
	return slices.Concat(text[:at[0]], re.Expand(nil, []byte(by), text, at), text[at[1]:])
}

// misfits returns what is wrong with a compose file beside the page.
func misfits(t *testing.T, text, docs []byte) (all []string) {
	t.Helper()
	var c composed
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil {
		return []string{err.Error()}
	}
	urls := map[string]string{}
	for _, m := range exported.FindAllSubmatch(text, -1) {
		urls[strings.ToLower(string(m[1]))] = string(m[2])
	}
	for _, m := range testedRow.FindAllSubmatch(docs, -1) {
		engine, tested := string(m[1]), string(m[2])
		tag := versionTag.FindStringSubmatch(c.Services[engine].Image)
		if tag == nil || !strings.HasPrefix(tested+".", tag[1]+".") {
			all = append(all, engine+": image "+c.Services[engine].Image+", and docs/engines.md says "+tested)
		}
		url := urls[engine]
		if file, ok := strings.CutPrefix(url, "$PWD/"); ok {
			config, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				all = append(all, err.Error())
			}
			url = string(config)
		}
		port := portOf.FindStringSubmatch(strings.ReplaceAll(url, "postgres@", ""))
		if port == nil || !slices.ContainsFunc(c.Services[engine].Ports, func(p string) bool { return strings.HasPrefix(p, port[0]+":") }) {
			all = append(all, engine+": its URL "+urls[engine]+" is none of its ports")
		}
	}
	if len(urls) != len(testedRow.FindAllSubmatch(docs, -1)) {
		all = append(all, "the URLs in the head are not one of each engine")
	}
	return append(all, c.dangling()...)
}

// dangling returns what services refer to that isn't there.
func (c composed) dangling() (all []string) {
	for name, s := range c.Services {
		for other := range s.DependsOn {
			if _, ok := c.Services[other]; !ok {
				all = append(all, name+" depends on "+other)
			}
		}
		for _, config := range s.Configs {
			if _, ok := c.Configs[config.Source]; !ok {
				all = append(all, name+" has the config "+config.Source)
			}
		}
		for _, volume := range s.Volumes {
			volume, _, _ = strings.Cut(volume, ":")
			if _, ok := c.Volumes[volume]; !ok {
				all = append(all, name+" has the volume "+volume)
			}
		}
	}
	return all
}
