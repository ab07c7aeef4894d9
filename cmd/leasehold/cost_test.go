package main

import "testing"

func TestCost(t *testing.T) { scripts(t, "cost") }
