package main

import (
	"os"
	"path/filepath"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func TestSBOMNamesWhatIsLinked(t *testing.T) {
	_, tree, _, err := made(t, found(t, map[string]string{"LICENSE": mit}), "v0.1.0", nil)
	must(t, err)
	into := filepath.Join(t.TempDir(), "sbom")
	must(t, writeSBOMs(tree, into))
	f, err := os.Open(filepath.Join(into, "tool.cdx.json"))
	must(t, err)
	defer f.Close()
	var doc cdx.BOM
	must(t, cdx.NewBOMDecoder(f, cdx.BOMFileFormatJSON).Decode(&doc))
	if c := doc.Metadata.Component; c.Name != "tool" || c.Version != "v0.1.0" {
		t.Errorf("it is of %s %s", c.Name, c.Version)
	}
	got := map[string]cdx.Component{}
	for _, c := range *doc.Components {
		got[c.PackageURL] = c
	}
	if len(got) != 3 {
		t.Errorf("it has %d components: want the core, the engine and the standard library, and not the guard", len(got))
	}
	for _, purl := range []string{"pkg:golang/example.com/core@v0.1.0", "pkg:golang/example.com/core/store/engine@v0.1.0"} {
		c, ok := got[purl]
		if !ok {
			t.Errorf("it lacks %s", purl)
			continue
		}
		if c.Licenses == nil || (*c.Licenses)[0].License.ID != "MIT" {
			t.Errorf("%s has licenses %v: want MIT", purl, c.Licenses)
		}
	}
	refs := map[string]bool{}
	for _, d := range *doc.Dependencies {
		refs[d.Ref] = true
	}
	for _, d := range *doc.Dependencies {
		if d.Dependencies == nil {
			continue
		}
		for _, on := range *d.Dependencies {
			if !refs[on] {
				t.Errorf("%s depends on %s, which is not there", d.Ref, on)
			}
		}
	}
}

const mit = `MIT License

Copyright (c) 2026 Nobody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH
THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`
