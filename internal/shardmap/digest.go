package shardmap

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
)

// Carried is the name under which the record of a worker's session carries its [Digest]. The lock
// server neither shows entries whose names begin with a dot nor lets requests set them.
const Carried = ".shard-load"

// The bounds of a digest: as text it has at most 1,100 bytes.
const (
	MaxDigestSlices = 96
	MaxDigestHot    = 16
)

// Digest is the load that a worker has measured of its slices.
type Digest struct {
	Slices []SliceLoad // the busiest, at most MaxDigestSlices
	Rest   float64     // the mean load of each slice that isn't among them; 0 when none is left out
	Grain  float64     // the mean size of a report, each weighted by its size
	Hot    []Hot       // the busiest keys, at most MaxDigestHot
}

// SliceLoad is the load of one slice, in what the program reports, a second.
type SliceLoad struct {
	Tag  uint32 // of where the slice begins; see Tag
	Load float64
}

// Hot is a busy key of a hashed space.
type Hot struct {
	Hash uint64
	Load float64
}

// Tag tells the slices of one worker apart, in little space: two of its slices have one tag about
// once in a million workers, which then share a load.
func Tag(from uint64) uint32 {
	from *= 0x9e3779b97f4a7c15
	return uint32(from >> 32)
}

// A load is stored as its logarithm, to 0.1 %: 0, or 2^-20 to 2^43.
func pack(load float64) uint16 {
	if !(load > 0) {
		return 0
	}
	return uint16(min(max(math.Round((math.Log2(load)+20)*1024), 1), math.MaxUint16))
}

func unpack(code uint16) float64 {
	if code == 0 {
		return 0
	}
	return math.Exp2(float64(code)/1024 - 20)
}

// Text returns the digest as text: what doesn't fit is left out, the least loaded first.
func (d Digest) Text() string {
	slices.SortFunc(d.Slices, func(a, b SliceLoad) int { return compare(b.Load, a.Load) })
	slices.SortFunc(d.Hot, func(a, b Hot) int { return compare(b.Load, a.Load) })
	if n := len(d.Slices); n > MaxDigestSlices {
		total := d.Rest
		for _, s := range d.Slices[MaxDigestSlices:] {
			total += s.Load
		}
		d.Rest, d.Slices = total/float64(n-MaxDigestSlices), d.Slices[:MaxDigestSlices]
	}
	d.Hot = d.Hot[:min(len(d.Hot), MaxDigestHot)]
	b := []byte{Format, byte(len(d.Slices)), byte(len(d.Hot))}
	b = binary.BigEndian.AppendUint16(b, pack(d.Rest))
	b = binary.BigEndian.AppendUint16(b, pack(d.Grain))
	for _, s := range d.Slices {
		b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(b, s.Tag), pack(s.Load))
	}
	for _, h := range d.Hot {
		b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(b, h.Hash), pack(h.Load))
	}
	return base64.RawStdEncoding.EncodeToString(b)
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// ParseDigest reads a digest, and reports whether the text is one.
func ParseDigest(text string) (d Digest, ok bool) {
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(b) < 7 || b[0] != Format {
		return d, false
	}
	n, hot := int(b[1]), int(b[2])
	d.Rest, d.Grain = unpack(binary.BigEndian.Uint16(b[3:])), unpack(binary.BigEndian.Uint16(b[5:]))
	b = b[7:]
	if n > MaxDigestSlices || hot > MaxDigestHot || len(b) != 6*n+10*hot {
		return d, false
	}
	for range n {
		d.Slices = append(d.Slices, SliceLoad{binary.BigEndian.Uint32(b), unpack(binary.BigEndian.Uint16(b[4:]))})
		b = b[6:]
	}
	for ; len(b) > 0; b = b[10:] {
		d.Hot = append(d.Hot, Hot{binary.BigEndian.Uint64(b), unpack(binary.BigEndian.Uint16(b[8:]))})
	}
	return d, true
}
