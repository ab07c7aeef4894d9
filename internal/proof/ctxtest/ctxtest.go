// Package ctxtest has a context that counts its children, for tests of what keeps contexts.
package ctxtest

import (
	"context"
	"sync/atomic"
)

// Parent is a context that isn't one of package context's. Its own end never comes.
type Parent struct {
	context.Context
	done chan struct{}
	kept atomic.Int64
}

// New returns a Parent with the values of ctx.
func New(ctx context.Context) *Parent { return &Parent{Context: ctx, done: make(chan struct{})} }

// Done implements [context.Context].
func (p *Parent) Done() <-chan struct{} { return p.done }

// AfterFunc is what package context asks for before it starts a goroutine for a child.
func (p *Parent) AfterFunc(func()) (stop func() bool) {
	p.kept.Add(1)
	return func() bool { p.kept.Add(-1); return true }
}

// Kept returns how many children have not been cancelled.
func (p *Parent) Kept() int64 { return p.kept.Load() }
