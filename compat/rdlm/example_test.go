package rdlm_test

import (
	"fmt"

	"github.com/leasehold/leasehold/compat/rdlm"
)

// Serve RDLM's clients as they are: give these options to server.Options.RDLM. RDLM answers some requests that aren't valid with
// 500, which Strict keeps.
func ExampleOptions() {
	admin, err := rdlm.ParseAdmin("no") // nobody may list and unlock others' locks
	if err != nil {
		fmt.Println(err)
		return
	}
	opts := rdlm.Options{Strict: true, Admin: admin}
	fmt.Println(opts.Strict)
	// Output: true
}
