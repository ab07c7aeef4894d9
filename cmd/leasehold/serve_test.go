package main

import "testing"

func TestServe(t *testing.T) { scripts(t, "serve") }
