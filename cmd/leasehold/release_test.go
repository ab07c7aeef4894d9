package main

import "testing"

func TestRelease(t *testing.T) { scripts(t, "release") }
