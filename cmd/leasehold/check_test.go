package main

import "testing"

func TestCheck(t *testing.T) { scripts(t, "check") }
