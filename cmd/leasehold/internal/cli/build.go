package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/leasehold/leasehold/store/open"
)

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
	for _, s := range open.Schemes() {
		v.Stores = append(v.Stores, s.Name)
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
