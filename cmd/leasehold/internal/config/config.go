// Package config finds out what each setting is and where that was said: a flag beats the
// environment, which beats the configuration file, which beats the default.
package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Setting is one thing that can be set. Its flag is --Name, its variable LEASEHOLD_NAME, its key in
// the file Name.
type Setting struct {
	Name    string
	Default string
	Check   func(value string) error // may be nil
}

// Env returns the name of the setting's environment variable.
func (s Setting) Env() string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// EnvPrefix begins the names of all environment variables.
const EnvPrefix = "LEASEHOLD_"

// Kind is the kind of place where a value was said.
type Kind string

// The kinds, the strongest first.
const (
	Flag    Kind = "flag"
	Env     Kind = "env"
	File    Kind = "file"
	Default Kind = "default"
)

// Source is where a value comes from.
type Source struct {
	Kind  Kind
	Where string // the flag, the variable, or PATH:LINE; "" for a default
}

func (s Source) String() string {
	if s.Where == "" {
		return string(s.Kind)
	}
	return string(s.Kind) + " " + s.Where
}

// Value is a setting's value and its source.
type Value struct {
	Setting Setting
	Text    string
	Source  Source
}

// Values are the values of all settings, in the settings' order.
type Values []Value

// Get returns the text of the setting called name, which has to be one.
func (v Values) Get(name string) string { return v.Find(name).Text }

// Find returns the value of the setting called name. One that isn't there is a Value without
// anything.
func (v Values) Find(name string) Value {
	for _, value := range v {
		if value.Setting.Name == name {
			return value
		}
	}
	return Value{}
}

// Input is where values are looked for.
type Input struct {
	Flags map[string]string                // those that were given, by name
	Env   func(name string) (string, bool) // os.LookupEnv
	Path  string                           // of the file; "" for none
	Must  bool                             // the file has to be there
}

// Resolve returns the value of each setting. An error names the place where the bad value was said.
// An empty variable counts as one that isn't set.
func Resolve(settings []Setting, in Input) (Values, error) {
	lines, err := readFile(settings, in)
	if err != nil {
		return nil, err
	}
	var values Values
	for _, s := range settings {
		v := Value{Setting: s, Text: s.Default, Source: Source{Kind: Default}}
		if line, ok := lines[s.Name]; ok {
			v.Text, v.Source = line.text, Source{File, fmt.Sprintf("%s:%d", in.Path, line.number)}
		}
		if text, ok := in.Env(s.Env()); ok && text != "" {
			v.Text, v.Source = text, Source{Env, s.Env()}
		}
		if text, ok := in.Flags[s.Name]; ok {
			v.Text, v.Source = text, Source{Flag, "--" + s.Name}
		}
		if s.Check != nil && v.Source.Kind != Default {
			if err := s.Check(v.Text); err != nil {
				return nil, fmt.Errorf("%s: %w", v.place(), err)
			}
		}
		values = append(values, v)
	}
	return values, nil
}

// place says for an error where the value stands.
func (v Value) place() string {
	if v.Source.Kind == File {
		return fmt.Sprintf("%s: %s", v.Source.Where, v.Setting.Name)
	}
	return v.Source.Where
}

// Path returns the configuration file to read, and whether it was named, so that it has to be
// there: $LEASEHOLD_CONFIG, or leasehold/config.yaml in the user's configuration directory. It is
// "" when there is no such directory.
func Path(env func(string) (string, bool), userDir func() (string, error)) (path string, named bool) {
	if path, ok := env(EnvPrefix + "CONFIG"); ok && path != "" {
		return path, true
	}
	dir, err := userDir()
	if err != nil {
		return "", false
	}
	return filepath.Join(dir, "leasehold", "config.yaml"), false
}
