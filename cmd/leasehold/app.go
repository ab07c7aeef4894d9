package main

import "github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"

type app struct{ *view.Viewer }
