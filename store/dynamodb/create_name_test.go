package dynamodb

import (
	"strings"
	"testing"
)

func TestCheckTable(t *testing.T) {
	for name, ok := range map[string]bool{
		"abc": true, "A.b_c-9": true, strings.Repeat("x", 255): true,
		"": false, "ab": false, strings.Repeat("x", 256): false, "a/b": false, "abc\n": false, "ab c": false, "täbel": false,
	} {
		if err := CheckTable(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
