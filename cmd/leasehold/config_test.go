package main

import "testing"

func TestConfig(t *testing.T) { scripts(t, "config") }
