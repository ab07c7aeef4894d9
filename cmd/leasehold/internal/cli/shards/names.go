package shards

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/shardmap"
)

// maxRange bounds the names of one range.
const maxRange = 1_000_000

// parseNames reads names with commas between them. A range of whole numbers, as in 0-63 or p00-p63,
// stands for all of its names; a leading zero says how many digits each has.
func parseNames(flag, text string) ([]string, error) {
	var all []string
	for part := range strings.SplitSeq(text, ",") {
		names, err := parseRange(flag, strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		all = append(all, names...)
	}
	return all, checkNames(flag, all)
}

func parseRange(flag, part string) ([]string, error) {
	first, last, isRange := strings.Cut(part, "-")
	prefix, from := splitNumber(first)
	otherPrefix, to := splitNumber(last)
	if strings.Trim(part, "0123456789-") == "" && (strings.Contains(part, "--") || strings.Trim(part, "-") != part) {
		return nil, cli.Usage("%s %q: want a range as in 0-63, or a name that is more than digits and stray dashes", flag, part)
	}
	if !isRange || from == "" || to == "" || strings.Contains(last, "-") || otherPrefix != "" && otherPrefix != prefix {
		return []string{part}, nil
	}
	a, err := strconv.Atoi(from)
	b, err2 := strconv.Atoi(to)
	if err != nil || err2 != nil || b < a || b-a >= maxRange {
		return nil, cli.Usage("%s %q: want a range that rises, of at most %d names, as in 0-63", flag, part, maxRange)
	}
	width := 0
	if from[0] == '0' && len(from) > 1 {
		width = len(from)
	}
	names := make([]string, 0, b-a+1)
	for i := a; i <= b; i++ {
		names = append(names, fmt.Sprintf("%s%0*d", prefix, width, i))
	}
	return names, nil
}

// splitNumber returns what is before the digits at the end of a text, and the digits.
func splitNumber(text string) (prefix, digits string) {
	prefix = strings.TrimRight(text, "0123456789")
	return prefix, text[len(prefix):]
}

// readNames reads the names in a file, one to a line; "-" is standard input.
func readNames(flag, path string, stdin io.Reader) (all []string, err error) {
	in := stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, cli.Usage("%s: %w", flag, err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if name := strings.TrimSpace(lines.Text()); name != "" && !strings.HasPrefix(name, "#") {
			all = append(all, name)
		}
	}
	switch {
	case lines.Err() != nil:
		return nil, cli.Usage("%s %s: %w", flag, path, lines.Err())
	case len(all) == 0:
		return nil, cli.Usage("%s %s: there is no name in it: want one to a line", flag, path)
	}
	return all, checkNames(flag, all)
}

func checkNames(flag string, names []string) error {
	seen := make(map[string]bool, len(names))
	for _, n := range names {
		if err := shardmap.CheckName(n); err != nil {
			return cli.Usage("%s: %w", flag, err)
		}
		if seen[n] {
			return cli.Usage("%s: %q is there twice", flag, n)
		}
		seen[n] = true
	}
	return nil
}

// parseLabels reads pairs KEY=VALUE.
func parseLabels(flag string, pairs []string) (map[string]string, error) {
	var all map[string]string
	for _, pair := range pairs {
		k, v, ok := strings.Cut(pair, "=")
		if !ok || k == "" {
			return nil, cli.Usage("%s %q: want KEY=VALUE", flag, pair)
		}
		if all == nil {
			all = map[string]string{}
		}
		all[k] = v
	}
	return all, nil
}
