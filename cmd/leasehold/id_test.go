package main

import "testing"

func TestID(t *testing.T) { scripts(t, "id") }
