package main

import "testing"

func TestWithLock(t *testing.T) { scripts(t, "with-lock") }
