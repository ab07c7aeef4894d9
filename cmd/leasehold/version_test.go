package main

import "testing"

func TestVersion(t *testing.T) { scripts(t, "version") }
