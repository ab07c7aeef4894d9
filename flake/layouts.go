package flake

import "time"

var epoch2020 = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// Snowflake returns the layout of Snowflake, whose name is "twitter": 41 bits of milliseconds since
// 2010-11-04 01:42:54.657, 10 of node, 12 of sequence.
func Snowflake() Layout {
	return known(Spec{
		Name: "twitter", Epoch: time.UnixMilli(1288834974657).UTC(), Unit: time.Millisecond,
		Fields: []Field{{Part: Time, Bits: 41}, {Part: Node, Bits: 10}, {Part: Sequence, Bits: 12}},
	})
}

// Sonyflake returns the layout of Sonyflake: 39 bits of 10 ms since 2014-09-01, 8 of sequence, 16
// of node.
func Sonyflake() Layout {
	return known(Spec{
		Name: "sonyflake", Epoch: time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC), Unit: 10 * time.Millisecond,
		Fields: []Field{{Part: Time, Bits: 39}, {Part: Sequence, Bits: 8}, {Part: Node, Bits: 16}},
	})
}

// TSID returns the layout of tsid-creator with its usual 1,024 nodes: 42 bits of milliseconds since
// 2020, 10 of node, 12 of sequence. The 42nd bit is the sign of an int64, so that ids end when it
// would be set.
func TSID() Layout {
	return known(Spec{
		Name: "tsid", Epoch: epoch2020, Unit: time.Millisecond,
		Fields: []Field{{Part: Time, Bits: 42}, {Part: Node, Bits: 10}, {Part: Sequence, Bits: 12}},
	})
}

// Instagram returns the layout of Instagram's ids: 41 bits of milliseconds since 2011-08-24
// 21:07:01.721, 13 of node, which were logical shards there, 10 of sequence. The first bit of time
// is the sign of an int64, so that ids end when it would be set.
func Instagram() Layout {
	return known(Spec{
		Name: "instagram", Epoch: time.UnixMilli(1314220021721).UTC(), Unit: time.Millisecond,
		Fields: []Field{{Part: Time, Bits: 41}, {Part: Node, Bits: 13}, {Part: Sequence, Bits: 10}},
	})
}

// ObjectID returns the layout of MongoDB's ObjectId, 96 bits: 32 bits of seconds since 1970, 40 of
// node, 24 of sequence. Drivers draw the node's bits at random for each process, and start the
// sequence anywhere. [ID96.Hex] is the usual text.
func ObjectID() Layout {
	return known(Spec{
		Name: "objectid", Epoch: time.Unix(0, 0).UTC(), Unit: time.Second,
		Fields: []Field{{Part: Time, Bits: 32}, {Part: Node, Bits: 40}, {Part: Sequence, Bits: 24}},
	})
}

// JavaScript returns a layout whose ids are numbers in JavaScript, exactly: 53 bits, of which 41
// are milliseconds since 2020, 5 node, 7 sequence.
func JavaScript() Layout {
	return known(Spec{
		Name: "js53", Epoch: epoch2020, Unit: time.Millisecond,
		Fields: []Field{{Part: Time, Bits: 41}, {Part: Node, Bits: 5}, {Part: Sequence, Bits: 7}},
	})
}

// Reversed returns the layout whose ids are Snowflake's with their bits in reverse order, since
// 2020. Consecutive ids are far apart. So no range of keys takes all the writes of a database that
// is partitioned by ranges.
func Reversed() Layout {
	return known(Spec{
		Name: "reversed", Epoch: epoch2020, Unit: time.Millisecond,
		Fields: []Field{
			{Part: Unused, Bits: 1},
			{Part: Sequence, Bits: 12, Reversed: true}, {Part: Node, Bits: 10, Reversed: true}, {Part: Time, Bits: 41, Reversed: true},
		},
	})
}

// Scatter returns the layout of ids as long as MongoDB's ObjectId, 96 bits, whose fastest bits come
// first. It has 12 bits of sequence and 42 of milliseconds since 2020, both reversed, 10 of node,
// and 32 of metadata. Consecutive ids differ in their first bit, and so in their most significant
// byte.
func Scatter() Layout {
	return known(Spec{
		Name: "scatter", Epoch: epoch2020, Unit: time.Millisecond,
		Fields: []Field{
			{Part: Sequence, Bits: 12, Reversed: true}, {Part: Time, Bits: 42, Reversed: true}, {Part: Node, Bits: 10}, {Part: Metadata, Bits: 32},
		},
	})
}

// Layouts returns the layouts above. [ParseLayout] returns the one of a name.
func Layouts() []Layout {
	return []Layout{Snowflake(), Sonyflake(), TSID(), Instagram(), JavaScript(), Reversed(), Scatter(), ObjectID()}
}

// names returns the names of [Layouts].
func names() []string {
	var all []string
	for _, l := range Layouts() {
		all = append(all, l.Name())
	}
	return all
}

// named returns the one of [Layouts] that has that name, if one does.
func named(name string) (Layout, bool) {
	for _, l := range Layouts() {
		if l.Name() == name {
			return l, true
		}
	}
	return Layout{}, false
}

// known is NewLayout for specs of this file, which a test checks.
func known(s Spec) Layout {
	l, err := NewLayout(s)
	if err != nil {
		panic(err)
	}
	return l
}
