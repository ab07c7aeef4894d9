package cli

import (
	"runtime"
	"runtime/debug"
)

// What the linker writes where a package is made (-X): the version that it is of, the commit, and
// the commit's time. Other builds have what the Go command knows.
var version, revision, revisionTime string

// Name is what this program is called in what it says of itself.
func Name() string {
	if Lite {
		return "leasehold-lite"
	}
	return "leasehold"
}

// Build is the version in JSON.
type Build struct {
	Version  string   `json:"version"`
	Revision string   `json:"revision,omitempty"`
	Modified bool     `json:"modified,omitempty"` // built from a checkout with changes of its own
	Built    string   `json:"revision_time,omitempty"`
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	Stores   []string `json:"stores"`
}

// ReadBuild returns the version of this program.
func ReadBuild() Build {
	v := Build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	for _, s := range Stores() {
		v.Stores = append(v.Stores, s.Name)
	}
	if version != "" {
		v.Version, v.Revision, v.Built = version, revision, revisionTime
		return v
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Built = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
