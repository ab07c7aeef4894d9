package main

import "testing"

func TestDoctor(t *testing.T) { scripts(t, "doctor") }
