package cli

import "testing"

func TestMistypedVariables(t *testing.T) {
	for name, want := range map[string]string{
		"LEASEHOLD_STROE": "LEASEHOLD_STORE", "LEASEHOLD_STORES": "LEASEHOLD_STORE", "LEASEHOLD_KILLAFTER": "LEASEHOLD_KILL_AFTER", "LEASEHOLD_TTLS": "LEASEHOLD_TTL",
		"LEASEHOLD_STORE": "", "LEASEHOLD_TTL": "", "STORE": "", "LEASEHOLD_DIRECTORY": "",
		// What the program itself sets and reads is no typing error.
		"LEASEHOLD_NAME": "", "LEASEHOLD_TOKEN": "", "LEASEHOLD_HOLDER": "", "LEASEHOLD_SLOT": "", "LEASEHOLD_ABOVE": "", "LEASEHOLD_RUN": "", "LEASEHOLD_SEQUENCER": "",
		"LEASEHOLD_ID": "", "LEASEHOLD_ID_WINDOW": "", "LEASEHOLD_ID_FLOOR": "", "LEASEHOLD_ID_CEILING": "", "LEASEHOLD_CONFIG": "", "LEASEHOLD_SERVER_TOKEN": "", "LEASEHOLD_TEST_REQUIRE": "",
		"LEASEHOLD_HOLD": "",
	} {
		got := ""
		for _, pair := range mistyped([]string{name + "=x"}) {
			got = pair[1]
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"ttl", "ttl", 0}, {"tll", "ttl", 1}, {"stroe", "store", 1}, {"onceper", "once-per", 1}, {"", "abc", 3}, {"abc", "", 3}, {"ab", "ba", 1}, {"wait", "weight", 3}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
