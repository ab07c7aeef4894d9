package shardmap

import (
	"slices"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// Whoever has missed more than the news tell, or meets news that began again, looks at all.
func TestNewsTellOfWhatWasMissed(t *testing.T) {
	n, err := ParseNews(store.Record{})
	if err != nil {
		t.Fatal(err)
	}
	n.Add(3, 4)
	n.Add(5)
	for _, c := range []struct {
		last int
		want []int
		ok   bool
	}{{3, nil, true}, {2, []int{5}, true}, {0, []int{3, 4, 5}, true}, {4, nil, false}} {
		if got, ok := n.Since(News{Series: n.Series, Last: c.last}); !slices.Equal(got, c.want) || ok != c.ok {
			t.Errorf("since %d: %v, %t, want %v, %t", c.last, got, ok, c.want, c.ok)
		}
	}
	if got, ok := n.Since(News{Last: 3}); ok {
		t.Errorf("the record was made again, and %v are all that has changed", got)
	}
	for i := range MaxNews {
		n.Add(i)
	}
	if got, ok := n.Since(News{Series: n.Series, Last: 2}); ok {
		t.Errorf("one change was forgotten, and %v are all", got)
	}
	if got, ok := n.Since(News{Series: n.Series, Last: 3}); !ok || len(got) != MaxNews {
		t.Errorf("%v, %t", got, ok)
	}
}

// News that another program wrote are an error, not a panic.
func TestBadNews(t *testing.T) {
	for _, data := range []string{"x", `{"v":2}`, `{"v":1,"n":1,"c":[1,2]}`, `{"v":1,"n":-1}`} {
		if n, err := ParseNews(store.Record{Data: []byte(data)}); err == nil {
			t.Errorf("%s is read as %+v", data, n)
		}
	}
}
