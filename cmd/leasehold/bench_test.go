package main

import "testing"

func TestBench(t *testing.T) { scripts(t, "bench") }
