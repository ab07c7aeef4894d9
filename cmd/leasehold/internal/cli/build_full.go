//go:build !lite

package cli

// Lite is whether this program was built with the tag lite.
const Lite = false
