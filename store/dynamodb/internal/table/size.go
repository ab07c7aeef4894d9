package table

import (
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The bytes of a row that one unit pays for.
const (
	writeUnit = 1 << 10
	readUnit  = 4 << 10 // of a strong read
)

// Units returns how many units of that many bytes a request over size bytes takes: one at least.
func Units(size, unit int) float64 { return math.Ceil(float64(max(size, 1)) / float64(unit)) }

// WriteUnits returns what a write of a row of size bytes takes, and ReadUnits what a strong read of
// it does.
func WriteUnits(size int) float64 { return Units(size, writeUnit) }

// ReadUnits returns what a strong read of a row of size bytes takes.
func ReadUnits(size int) float64 { return Units(size, readUnit) }

// Size returns the bytes of a row as DynamoDB counts them.
func Size(row Row) int {
	n := 0
	for name, v := range row {
		n += len(name) + sizeOf(v)
	}
	return n
}

func sizeOf(v types.AttributeValue) int {
	const container, element = 3, 1
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return number(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberL:
		n := container
		for _, e := range v.Value {
			n += element + sizeOf(e)
		}
		return n
	case *types.AttributeValueMemberM:
		return container + len(v.Value)*element + Size(v.Value)
	case *types.AttributeValueMemberSS:
		n := 0
		for _, s := range v.Value {
			n += len(s)
		}
		return n
	case *types.AttributeValueMemberNS:
		n := 0
		for _, s := range v.Value {
			n += number(s)
		}
		return n
	case *types.AttributeValueMemberBS:
		n := 0
		for _, b := range v.Value {
			n += len(b)
		}
		return n
	}
	return 1 // a boolean or null
}

// number returns the bytes of a number: one for two significant digits, one besides.
func number(text string) int {
	digits := strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(text), "0")
	return (len(digits)+1)/2 + 1
}
