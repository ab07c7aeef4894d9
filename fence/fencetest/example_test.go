package fencetest_test

import (
	"context"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencetest"
)

// The test of a guard of your own: a write under an old token must be refused, whatever happened in between.
func ExampleStory() {
	TestStory := func(t *testing.T) {
		var mark fence.Mark
		fencetest.Story(t, func(_ context.Context, s fence.Sequencer) error {
			next, err := mark.Admit(s.Name, s.Holder, s.Token) // yours: one write to the guarded resource
			if err == nil {
				mark = next
			}
			return err
		}, fencetest.Options{})
	}
	_ = TestStory
}
