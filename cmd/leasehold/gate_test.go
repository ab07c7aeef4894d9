package main

import "testing"

func TestGate(t *testing.T) { scripts(t, "gate") }
