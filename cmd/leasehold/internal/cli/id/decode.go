package id

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/flake"
)

// decodedView is what an id is made of, as it is in JSON.
type decodedView struct {
	Layout   string    `json:"layout"`
	ID       string    `json:"id"` // decimal, or base32 of one of more than 64 bits
	Hex      string    `json:"hex"`
	Base32   string    `json:"base32"`
	Base62   string    `json:"base62"`
	Time     time.Time `json:"time"`
	Node     uint64    `json:"node"`
	Sequence uint64    `json:"sequence"`
	Metadata *uint64   `json:"metadata,omitempty"` // if the layout has any
}

func (a *app) idDecodeCommand() *cobra.Command {
	var name, form string
	cmd := &cobra.Command{
		Use:   "decode ID",
		Short: "Say what an id is made of",
		Long: "Write the time, the node, the sequence and the metadata of ID. An id doesn't say of which layout it is: without --layout all that\n" +
			"it can be of are written, and the times tell which one it is. ID may be decimal, base32, base62 or hex, which its length tells; --format\n" +
			"says it where digits alone could be several of them.",
		Example: "  leasehold id decode 1050118621198921728\n" +
			"  leasehold id decode 507f1f77bcf86cd799439011 --layout objectid\n" +
			"  leasehold id decode 175928847299117063 --layout epoch=2015-01-01,bits=64,time=42,node=10,sequence=12\n" +
			"  leasehold id decode 0G3T8WQ0000Z4 --layout tsid",
		Args: cli.Want("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			layouts := flake.Layouts()
			if cmd.Flags().Changed("layout") {
				l, err := cli.LayoutArg(name)
				if err != nil {
					return err
				}
				layouts = []flake.Layout{l}
			}
			if err := checkForm(form, false); err != nil {
				return err
			}
			views, err := decoded(layouts, args[0], form)
			if err != nil {
				return err
			}
			return a.writeDecoded(views)
		},
	}
	cmd.Flags().StringVar(&name, "layout", "", "the layout that it is of, by name or as a specification")
	cmd.Flags().StringVar(&form, "format", "", "decimal, base32, base62 or hex (default: by its length)")
	_ = cmd.RegisterFlagCompletionFunc("layout", completeLayouts)
	a.Flag(cmd.Flags(), "output")
	return cmd
}

// decoded returns what an id is made of, in each of the layouts that it can be of.
func decoded(layouts []flake.Layout, text, form string) ([]decodedView, error) {
	var views []decodedView
	var failure error
	for _, l := range layouts {
		var v decodedView
		var err error
		if l.Bits() > 64 {
			v, err = decode[flake.ID96](l, text, form)
		} else {
			v, err = decode[flake.ID](l, text, form)
		}
		if err != nil {
			failure = err
			continue
		}
		views = append(views, v)
	}
	switch {
	case len(views) > 0:
		return views, nil
	case len(layouts) == 1:
		return nil, cli.Usage("ID: %w", failure)
	}
	return nil, cli.Usage("ID %.60q: want decimal digits, 13 or 20 characters of base32, 11 or 17 of base62, or 16 or 24 of hex", text)
}

func decode[T flake.Value](l flake.Layout, text, form string) (decodedView, error) {
	id, err := parsed[T](text, form)
	if err != nil {
		return decodedView{}, err
	}
	p, err := flake.Decode(l, id)
	if err != nil {
		return decodedView{}, err
	}
	v := decodedView{
		Layout: l.Name(), ID: written(id, formDefault), Hex: written(id, formHex), Base32: written(id, formBase32), Base62: written(id, formBase62),
		Time: p.Time, Node: p.Node, Sequence: p.Sequence,
	}
	if l.Width(flake.Metadata) > 0 {
		v.Metadata = &p.Metadata
	}
	return v, nil
}

// parsed reads an id. Its length tells how it is written, unless form says so.
func parsed[T flake.Value](text, form string) (T, error) {
	var id T
	narrow, short := any(&id).(*flake.ID)
	var err error
	switch {
	case short && (form == formDecimal || form == formDefault && isDecimal(text)):
		*narrow, err = flake.Parse(text)
		return id, err
	case form == formHex, form == formDefault && (len(text) == 16 || len(text) == 24):
		return flake.ParseHex[T](text)
	case form == formBase62, form == formDefault && (len(text) == 11 || len(text) == 17):
		return flake.ParseBase62[T](text)
	case form == formDecimal:
		return id, fmt.Errorf("id %.40q: ids of more than 64 bits are not written in decimal", text)
	}
	return flake.ParseBase32[T](text)
}

// isDecimal reports whether text is a number as it is usually written.
func isDecimal(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == text
}

func (a *app) writeDecoded(views []decodedView) error {
	switch {
	case a.Output() != output.Table:
		return output.WriteList(a.Out, views, a.Output() == output.Lines)
	case len(views) == 1:
		return output.WriteTable(a.Out, decodedRows(views[0], a.Clock.Wall()), 0, nil)
	}
	layout, when := output.Column{Title: "LAYOUT"}, output.Column{Title: "TIME"}
	node, sequence := output.Column{Title: "NODE"}, output.Column{Title: "SEQUENCE"}
	for _, v := range views {
		layout.Cells = append(layout.Cells, v.Layout)
		when.Cells = append(when.Cells, v.Time.Format(time.RFC3339Nano))
		node.Cells = append(node.Cells, strconv.FormatUint(v.Node, 10))
		sequence.Cells = append(sequence.Cells, strconv.FormatUint(v.Sequence, 10))
	}
	return output.WriteTable(a.Out, []output.Column{layout, when, node, sequence}, 0, nil)
}

// decodedRows has a row for each part.
func decodedRows(v decodedView, now time.Time) []output.Column {
	part, value := output.Column{Title: "PART"}, output.Column{Title: "VALUE"}
	row := func(name, text string) {
		part.Cells, value.Cells = append(part.Cells, name), append(value.Cells, text)
	}
	row("layout", v.Layout)
	when := output.Ago(v.Time, now)
	// Of a clock that is wrong, or of another layout.
	if ahead := v.Time.Sub(now); ahead >= time.Second {
		when = "in " + output.Roughly(ahead)
	}
	row("time", fmt.Sprintf("%s (%s)", v.Time.Format(time.RFC3339Nano), when))
	row("node", strconv.FormatUint(v.Node, 10))
	row("sequence", strconv.FormatUint(v.Sequence, 10))
	if v.Metadata != nil {
		row("metadata", fmt.Sprintf("%d (0x%08x)", *v.Metadata, *v.Metadata))
	}
	row("id", v.ID)
	row("hex", v.Hex)
	row("base32", v.Base32)
	row("base62", v.Base62)
	return []output.Column{part, value}
}

// layoutView is a layout as it is in JSON.
type layoutView struct {
	Layout    string      `json:"layout"`
	Bits      int         `json:"bits"`
	Fields    []fieldView `json:"fields"` // from the most significant bit on
	Spec      string      `json:"specification"`
	Epoch     time.Time   `json:"epoch"`
	Unit      string      `json:"unit"`
	PerSecond float64     `json:"ids_per_second"` // of one node
	Nodes     uint64      `json:"nodes"`
	Until     time.Time   `json:"until"`
	Ordered   bool        `json:"ordered"` // by time
}

type fieldView struct {
	Part     string `json:"part"`
	Bits     int    `json:"bits"`
	Reversed bool   `json:"reversed,omitempty"`
}

func (a *app) idLayoutsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "layouts",
		Short: "List the layouts of ids",
		Long: "List the layouts of ids: how long they are, how many ids a node can make in a second, how many nodes there can be, until when there are\n" +
			"ids, and whether they are in the order of their times. With -o json, specification is what other layouts can be written after.",
		Args: cli.Want(),
		RunE: func(*cobra.Command, []string) error { return a.idLayouts() },
	}
	a.Flag(cmd.Flags(), "output")
	return cmd
}

func (a *app) idLayouts() error {
	var views []layoutView
	titles := []string{"LAYOUT", "BITS", "UNIT", "IDS/S A NODE", "NODES", "UNTIL", "BY TIME", "FIELDS"}
	columns := make([]output.Column, len(titles))
	for i, title := range titles {
		columns[i].Title = title
	}
	for _, l := range flake.Layouts() {
		s := l.Spec()
		v := layoutView{
			Layout: l.Name(), Bits: l.Bits(), Spec: s.String(), Epoch: s.Epoch, Unit: s.Unit.String(), PerSecond: l.PerSecond(), Nodes: l.Nodes(),
			Until: l.Exhausted(), Ordered: l.Ordered(),
		}
		var fields []string
		for _, f := range s.Fields {
			v.Fields = append(v.Fields, fieldView{f.Part.String(), f.Bits, f.Reversed})
			text := fmt.Sprintf("%d %v", f.Bits, f.Part)
			if f.Reversed {
				text += " reversed"
			}
			fields = append(fields, text)
		}
		views = append(views, v)
		ordered := map[bool]string{true: "yes", false: "no"}[v.Ordered]
		for i, cell := range []string{
			v.Layout, strconv.Itoa(v.Bits), v.Unit, strconv.FormatFloat(v.PerSecond, 'f', -1, 64), strconv.FormatUint(v.Nodes, 10),
			v.Until.Format(time.DateOnly), ordered, strings.Join(fields, ", "),
		} {
			columns[i].Cells = append(columns[i].Cells, cell)
		}
	}
	if a.Output() != output.Table {
		return output.WriteList(a.Out, views, a.Output() == output.Lines)
	}
	return output.WriteTable(a.Out, columns, 0, nil)
}
