package main

import "testing"

func TestVerify(t *testing.T) { scripts(t, "verify") }
