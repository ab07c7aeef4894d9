package main

import "testing"

func TestShow(t *testing.T) { scripts(t, "show") }
