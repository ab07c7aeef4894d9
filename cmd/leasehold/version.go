package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/store/open"
)

// versionInfo is the version in JSON.
type versionInfo struct {
	Version  string   `json:"version"`
	Revision string   `json:"revision,omitempty"`
	Modified bool     `json:"modified,omitempty"` // built from a checkout with changes of its own
	Built    string   `json:"revision_time,omitempty"`
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	Stores   []string `json:"stores"`
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the version of this program",
		Example: "  leasehold version -o json",
		Args:    want(),
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			if a.output() != outputTable {
				return writeJSON(a.out, v, a.output() == outputLines)
			}
			line := "leasehold " + v.Version
			if v.Revision != "" {
				line += fmt.Sprintf(" (%.12s, %s)", v.Revision, v.Built)
			}
			_, err := fmt.Fprintf(a.out, "%s, %s, %s\nstores: %s\n", line, v.Go, v.Platform, strings.Join(v.Stores, ", "))
			return err
		},
	}
	a.flag(cmd.Flags(), "output")
	return cmd
}

func readVersion() versionInfo {
	v := versionInfo{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
