//go:build lite

package cli

// Lite is whether this program was built with the tag lite. Then it links none of the large
// clients.
const Lite = true
