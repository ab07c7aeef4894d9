package main

import "testing"

func TestBreak(t *testing.T) { scripts(t, "break") }
