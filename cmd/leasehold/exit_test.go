package main

import "testing"

func TestUsage(t *testing.T) { scripts(t, "usage") }
