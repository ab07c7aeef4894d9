package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

// forbidden returns which of the changes the version must not have after the one before, each with
// what to do.
func forbidden(before, version string, all []Change, said string) []string {
	patch := semver.MajorMinor(before) == semver.MajorMinor(version)
	stable := semver.Compare(semver.Major(version), "v0") > 0 && semver.Major(before) == semver.Major(version)
	_, minor := bump(before)
	var found []string
	for _, c := range all {
		switch {
		case patch && !c.Compatible:
			found = append(found, fmt.Sprintf("%s\n  a patch must fit every module of its minor version: undo it, or release %s", c, minor))
		case patch && c.Use != Shared:
			found = append(found, fmt.Sprintf("%s\n  a patch brings nothing to rely on: release %s", c, minor))
		case !c.Compatible && c.Use == Guards:
			found = append(found, fmt.Sprintf("%s\n  guards of an earlier minor version import it, and Go lets them: add something beside it instead", c))
		case !c.Compatible && c.Use == Public && stable:
			found = append(found, fmt.Sprintf("%s\n  v1 promises that programs keep building: add something beside it instead", c))
		case !c.Compatible && c.Use == Public && !saysIncompatible(said):
			found = append(found, fmt.Sprintf("%s\n  it breaks programs: say so in CHANGELOG.md, in a section whose title has \"incompatibly\" or \"Removed\"", c))
		}
	}
	return found
}

// compare returns the version before and what changed since.
func (o order) compare(w *Workspace) (before string, all []Change, err error) {
	before, err = o.before()
	if err != nil || before == "" {
		return before, nil, err
	}
	dir, err := os.MkdirTemp("", "leasehold-before-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	r, err := o.Repo.clone(filepath.Join(dir, "tree"), before+"^{commit}")
	if err != nil {
		return "", nil, err
	}
	old, err := load(string(r))
	if err != nil {
		return "", nil, err
	}
	all, err = changes(old, w)
	if err != nil {
		return "", nil, err
	}
	return before, append(all, directives(old, w)...), nil
}

// directives returns the modules that ask for another Go than before. That breaks who has no later
// one, so it counts as a change of what is public.
func directives(old, now *Workspace) []Change {
	var all []Change
	for _, m := range now.Modules {
		before := old.module(m.Path)
		if !m.Published || before == nil || before.File.Go == nil || m.File.Go == nil || before.File.Go.Version == m.File.Go.Version {
			continue
		}
		all = append(all, Change{m.Path, Public, "go " + before.File.Go.Version + " is go " + m.File.Go.Version, true})
	}
	return all
}

// compatible returns an error when the version must not have what it would have.
func (o order) compatible(w *Workspace) error {
	before, all, err := o.compare(w)
	if err != nil {
		return err
	}
	if before == "" {
		fmt.Fprintln(o.Out, "no release is tagged yet: there is no API to keep")
		return nil
	}
	text, err := os.ReadFile(w.file("CHANGELOG.md"))
	if err != nil {
		return err
	}
	_, said, _, err := cut(string(text))
	if err != nil {
		return err
	}
	if found := forbidden(before, o.Version, all, said); len(found) > 0 {
		return fmt.Errorf("version %s can't follow %s with these changes:\n%s", o.Version, before, strings.Join(found, "\n"))
	}
	return nil
}

// report prints what changed since the last release, and fails if the version must not have it.
// Without a version it says what may come next.
func (o order) report() error {
	if o.Version != "" {
		if err := checkVersion(o.Version); err != nil {
			return err
		}
	}
	w, err := load(string(o.Repo))
	if err != nil {
		return err
	}
	if err := w.check(); err != nil {
		return err
	}
	before, all, err := o.compare(w)
	if err != nil {
		return err
	}
	if before == "" {
		fmt.Fprintln(o.Out, "no release is tagged yet: any version may come first")
		return nil
	}
	for _, c := range all {
		fmt.Fprintln(o.Out, c)
	}
	if o.Version != "" {
		return o.compatible(w)
	}
	patch, minor := bump(before)
	next := patch
	if len(forbidden(before, patch, all, "### Removed")) > 0 {
		next = minor
	}
	fmt.Fprintf(o.Out, "%d changes since %s: the next is %s\n", len(all), before, next)
	return nil
}
