package main

import "testing"

func TestList(t *testing.T) { scripts(t, "list") }
