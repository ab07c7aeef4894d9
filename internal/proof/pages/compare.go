package pages

import (
	"regexp"
	"strings"
)

// anything are texts that differ from run to run, and what stands for each when output is compared.
var anything = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\b[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)?/\d+/[a-z0-9]{13}\b`), "HOLDER"},
	{regexp.MustCompile(`\b[A-Za-z0-9_.-]+/[a-z0-9]{13}\b`), "HOLDER"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(?:\.\d+)?\b`), "TIME"},
	{regexp.MustCompile(`\b\d{13,20}\b`), "NUMBER"},
	{regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+(?::\d+)?\b`), "ADDRESS"},
	{regexp.MustCompile(`\b(?:\d+(?:\.\d+)?(?:h|ms|m|s|µs))+\b`), "DURATION"},
	{regexp.MustCompile(`\b\d+ MiB\b`), "SIZE"},
	{regexp.MustCompile(`\(now\)`), "(DURATION ago)"},
	{regexp.MustCompile(`\b\d+\.\d+\b`), "FRACTION"},
	{regexp.MustCompile(`[ \t]+`), " "},
	{regexp.MustCompile(`(?m) $`), ""},
}

func normal(text string) string {
	for _, a := range anything {
		text = a.what.ReplaceAllString(text, a.by)
	}
	return strings.Trim(text, "\n")
}

// Matches reports whether a command printed what the page says. home is the folder that stands for
// a reader's home.
func Matches(want, got, home string) bool {
	if got = normal(strings.ReplaceAll(got, home, "/home/ada")); got != "" {
		got += "\n"
	}
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	if want = strings.Trim(want, "\n"); want != "" {
		for line := range strings.SplitSeq(want, "\n") {
			if strings.TrimSpace(line) == "…" {
				pattern.WriteString(`(?:[^\n]*\n)*?`)
				continue
			}
			for i, part := range strings.Split(normal(line), "…") {
				if i > 0 {
					pattern.WriteString(`[^\n]*`)
				}
				pattern.WriteString(regexp.QuoteMeta(part))
			}
			pattern.WriteString(`\n`)
		}
	}
	pattern.WriteString(`\z`)
	re, err := regexp.Compile(pattern.String())
	return err == nil && re.MatchString(got)
}
