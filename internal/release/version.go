package main

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

const versionForm = "want vMAJOR.MINOR.PATCH, such as v0.6.0, or a pre-release, such as v0.6.0-rc.1"

// checkVersion returns an error unless v is a version that the go command takes as it stands.
func checkVersion(v string) error {
	switch {
	case !semver.IsValid(v), semver.Canonical(v) != v:
		return fmt.Errorf("version %q: %s", v, versionForm)
	case module.IsPseudoVersion(v):
		return fmt.Errorf("version %q looks like one that the go command makes up for a commit: %s", v, versionForm)
	case semver.Compare(semver.Major(v), "v1") > 0:
		return fmt.Errorf("version %q: from v2 on, module paths have to end in %s; none does, so take a v0 or v1", v, "/"+semver.Major(v))
	}
	return nil
}

// last returns the highest version among the tags of the root module, or "".
func last(tags []string) string {
	tags = slices.DeleteFunc(slices.Clone(tags), func(tag string) bool { return checkVersion(tag) != nil })
	if len(tags) == 0 {
		return ""
	}
	return slices.MaxFunc(tags, semver.Compare)
}

// marker is the name of the folder in internal/lockstep that stands for the minor version of v.
func marker(v string) string {
	return strings.ReplaceAll(semver.MajorMinor(v), ".", "_")
}

// bump returns the next patch and the next minor version after v, which checkVersion has taken.
func bump(v string) (patch, minor string) {
	var x, y, z int
	pre := semver.Prerelease(v)
	if _, err := fmt.Sscanf(strings.TrimSuffix(v, pre), "v%d.%d.%d", &x, &y, &z); err != nil {
		return "", ""
	}
	return fmt.Sprintf("v%d.%d.%d%s", x, y, z+1, pre), fmt.Sprintf("v%d.%d.0%s", x, y+1, pre)
}
