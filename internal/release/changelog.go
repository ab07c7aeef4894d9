package main

import (
	"fmt"
	"strings"
	"time"
)

const unreleased = "## [Unreleased]"

// cut takes a changelog apart: what stands before the text under Unreleased, that text, and what
// follows it.
func cut(changelog string) (before, text, after string, err error) {
	at := strings.Index("\n"+changelog, "\n"+unreleased+"\n")
	if at < 0 {
		return "", "", "", fmt.Errorf("CHANGELOG.md: no line is %q: add it above the last version", unreleased)
	}
	at += len(unreleased) + 1
	rest := changelog[at:]
	end := strings.Index(rest, "\n## ")
	if end < 0 {
		end = len(rest) - 1
	}
	return changelog[:at], strings.TrimSpace(rest[:end+1]), rest[end+1:], nil
}

// notes returns what the changelog says of the release.
func notes(changelog string) (string, error) {
	_, text, _, err := cut(changelog)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return text + "\n", nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md: nothing is said under %q: write what users notice of this release", unreleased)
}

// released returns the changelog with the text under Unreleased as that of the version.
func released(changelog, version, date string) (string, error) {
	before, text, after, err := cut(changelog)
	if err != nil {
		return "", err
	}
	out := before + "\n## [" + strings.TrimPrefix(version, "v") + "] - " + date + "\n"
	if text != "" {
		out += "\n" + text + "\n"
	}
	if after != "" {
		out += "\n" + after
	}
	return out, nil
}

// saysIncompatible reports whether the text under Unreleased has a section for what breaks.
func saysIncompatible(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.ToLower(strings.TrimSpace(line))
		if strings.HasPrefix(line, "### ") && (strings.Contains(line, "incompatib") || strings.Contains(line, "removed")) {
			return true
		}
	}
	return false
}

// commitTime returns the time of a release's commits: the day's first second, or the base's time if
// that is later, since time must not run backwards along a branch.
func commitTime(base, date string) (string, error) {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return "", fmt.Errorf("--date %q: want a day such as 2026-11-24", date)
	}
	of, err := time.Parse(time.RFC3339, base)
	if err != nil {
		return "", fmt.Errorf("commit HEAD: its time: %w", err)
	}
	if of.After(day) {
		day = of
	}
	return day.UTC().Format(time.RFC3339), nil
}
