package main

import "testing"

func TestWatch(t *testing.T) { scripts(t, "watch") }
