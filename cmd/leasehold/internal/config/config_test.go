package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var settings = []Setting{
	{Name: "store", Default: "file:/default"},
	{Name: "kill-after", Default: "2s", Check: func(v string) error {
		if !strings.HasSuffix(v, "s") {
			return errors.New("want seconds")
		}
		return nil
	}},
}

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPrecedence(t *testing.T) {
	path := write(t, "# mine\nstore: file:/file\nkill-after: 3s\n")
	for _, c := range []struct {
		in                   Input
		store, storeSource   string
		after, afterSourceOf string
	}{
		{Input{Env: env()}, "file:/default", "default", "2s", "default"},
		{Input{Env: env(), Path: path}, "file:/file", "file " + path + ":2", "3s", "file " + path + ":3"},
		{Input{Env: env("LEASEHOLD_STORE", "file:/env", "LEASEHOLD_KILL_AFTER", ""), Path: path},
			"file:/env", "env LEASEHOLD_STORE", "3s", "file " + path + ":3"},
		{Input{Env: env("LEASEHOLD_STORE", "file:/env", "LEASEHOLD_KILL_AFTER", "4s"), Path: path, Flags: map[string]string{"store": "file:/flag"}},
			"file:/flag", "flag --store", "4s", "env LEASEHOLD_KILL_AFTER"},
	} {
		v, err := Resolve(settings, c.in)
		if err != nil {
			t.Fatal(err)
		}
		if v.Get("store") != c.store || v.Find("store").Source.String() != c.storeSource {
			t.Errorf("store is %s from %s: want %s from %s", v.Get("store"), v.Find("store").Source, c.store, c.storeSource)
		}
		if v.Get("kill-after") != c.after || v.Find("kill-after").Source.String() != c.afterSourceOf {
			t.Errorf("kill-after is %s from %s: want %s from %s", v.Get("kill-after"), v.Find("kill-after").Source, c.after, c.afterSourceOf)
		}
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	for _, c := range []struct {
		text  string
		flags map[string]string
		env   []string
		wants []string
	}{
		{text: "store: file:/x\nstroe: file:/y\n", wants: []string{"config.yaml:2", `unknown key "stroe"`, "store, kill-after"}},
		{text: "store: a\n\nstore: b\n", wants: []string{"config.yaml:3", "second time", "line 1"}},
		{text: "store:\n  url: x\n", wants: []string{"config.yaml:1", "plain value"}},
		{text: "store:\n", wants: []string{"config.yaml:1", "plain value"}},
		{text: "just words", wants: []string{"config.yaml", "ttl: 20s"}},
		{text: "a: b: c", wants: []string{"config.yaml", "not YAML"}},
		{text: "kill-after: 5\n", wants: []string{"config.yaml:1", "kill-after", "want seconds"}},
		{env: []string{"LEASEHOLD_KILL_AFTER", "5"}, wants: []string{"LEASEHOLD_KILL_AFTER", "want seconds"}},
		{flags: map[string]string{"kill-after": ""}, wants: []string{"--kill-after", "want seconds"}},
	} {
		_, err := Resolve(settings, Input{Env: env(c.env...), Flags: c.flags, Path: write(t, c.text)})
		if err == nil {
			t.Errorf("%q %v %v: accepted", c.text, c.env, c.flags)
			continue
		}
		for _, want := range c.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
	}
}

func TestFileThatIsMissing(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "config.yaml")
	if _, err := Resolve(settings, Input{Env: env(), Path: missing}); err != nil {
		t.Error(err)
	}
	if _, err := Resolve(settings, Input{Env: env(), Path: missing, Must: true}); err == nil || !strings.Contains(err.Error(), missing) {
		t.Error(err)
	}
	if v, err := Resolve(settings, Input{Env: env(), Path: write(t, "# nothing\n")}); err != nil || v.Get("store") != "file:/default" {
		t.Error(v, err)
	}
}

func TestPath(t *testing.T) {
	dir := func() (string, error) { return "/conf", nil }
	if path, named := Path(env(), dir); path != filepath.FromSlash("/conf/leasehold/config.yaml") || named {
		t.Error(path, named)
	}
	if path, named := Path(env("LEASEHOLD_CONFIG", "/x.yaml"), dir); path != "/x.yaml" || !named {
		t.Error(path, named)
	}
	if path, named := Path(env(), func() (string, error) { return "", errors.New("no home") }); path != "" || named {
		t.Error(path, named)
	}
}
