package open

import "fmt"

// omission is an engine that this build lacks: what people call it, and the build tag that leaves
// it out. It is the error of a URL that wants it.
type omission struct{ called, tag string }

func (o omission) Error() string {
	if o.tag == "lite" {
		return fmt.Sprintf("this is leasehold-lite, which has no %s: install the full program, leasehold", o.called)
	}
	return fmt.Sprintf("this program was built with the tag %s, which leaves out %s: build it without the tag", o.tag, o.called)
}
