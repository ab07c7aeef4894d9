package main

import "testing"

func TestStandby(t *testing.T) { scripts(t, "standby") }
