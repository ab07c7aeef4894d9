package main

import "testing"

func TestMan(t *testing.T) { scripts(t, "man") }
