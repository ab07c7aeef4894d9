package linear

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// ErrUnsettled is what the error of a check matches when the search took longer than was allowed.
var ErrUnsettled = errors.New("not settled whether the history is linearizable")

// Search looks for an order of ops in which model allows all of them, each at an instant between
// its call and its return. It returns an error that says how far one can be found, or one that
// matches [ErrUnsettled] when that took longer than limit. The Input of each operation is printed,
// and no two are alike.
func Search(model porcupine.Model, ops []porcupine.Operation, limit time.Duration) error {
	switch porcupine.CheckOperationsTimeout(model, ops, limit) {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return fmt.Errorf("the history of %d operations is not linearizable: %s", len(ops), explain(model, ops, limit))
	}
	return fmt.Errorf("%w: %d operations, in %v", ErrUnsettled, len(ops), limit)
}

// explain shows the longest order that was found, from its end, and what can't follow it.
func explain(model porcupine.Model, ops []porcupine.Operation, limit time.Duration) string {
	_, info := porcupine.CheckOperationsVerbose(model, ops, limit)
	var best []porcupine.Operation
	for _, order := range info.PartialLinearizationsOperations()[0] {
		if len(order) > len(best) {
			best = order
		}
	}
	placed := map[any]bool{}
	for _, o := range best {
		placed[o.Input] = true
	}
	first := int64(-1) // return among those that are left: what was called after it has to wait
	for _, o := range ops {
		if !placed[o.Input] && (first < 0 || o.Return < first) {
			first = o.Return
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d can be put in order, ending with", len(best))
	for _, o := range best[max(0, len(best)-5):] {
		fmt.Fprintf(&b, "\n\t%v", o.Input)
	}
	b.WriteString("\nbut then none of these can be next:")
	for _, o := range ops {
		if !placed[o.Input] && o.Call <= first {
			fmt.Fprintf(&b, "\n\t%v", o.Input)
		}
	}
	return b.String()
}
