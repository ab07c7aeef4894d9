package serve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

// layoutPools are the pools that numbers in ids come from, by layout, as a flag that may be
// repeated.
type layoutPools map[string]string

// Set implements [pflag.Value]. A layout's specification has "=" and "," in it, a pool's name has
// no "=" here.
func (p *layoutPools) Set(text string) error {
	i := strings.LastIndexByte(text, '=')
	if i <= 0 {
		return fmt.Errorf("%.80q: want LAYOUT=POOL", text)
	}
	layout, pool := text[:i], text[i+1:]
	if _, err := cli.LayoutArg(layout); err != nil {
		return err
	}
	if err := cli.PoolArg(pool); err != nil {
		return err
	}
	if other, twice := (*p)[layout]; twice && other != pool {
		return fmt.Errorf("the layout %s has two pools, %s and %s: want one", layout, other, pool)
	}
	if *p == nil {
		*p = layoutPools{}
	}
	(*p)[layout] = pool
	return nil
}

// String implements [pflag.Value].
func (p *layoutPools) String() string {
	var all []string
	for _, layout := range slices.Sorted(maps.Keys(*p)) {
		all = append(all, layout+"="+(*p)[layout])
	}
	return strings.Join(all, " ")
}

// Type implements [pflag.Value].
func (p *layoutPools) Type() string { return "LAYOUT=POOL" }
