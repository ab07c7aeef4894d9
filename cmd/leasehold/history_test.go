package main

import "testing"

func TestHistory(t *testing.T) { scripts(t, "history") }
