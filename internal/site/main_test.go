package main

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(whole.dir)
	os.Exit(code)
}
