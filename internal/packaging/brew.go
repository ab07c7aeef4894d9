package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// homepage is where releases are said to be; nothing is sent there.
const homepage = "https://github.com/leasehold/leasehold"

// brewed are the systems of a formula, with the words for them.
var brewed = []struct {
	target   target
	on, arch string
}{
	{target{"darwin", "arm64"}, "on_macos", "on_arm"},
	{target{"darwin", "amd64"}, "on_macos", "on_intel"},
	{target{"linux", "arm64"}, "on_linux", "on_arm"},
	{target{"linux", "amd64"}, "on_linux", "on_intel"},
}

// formula writes a Homebrew formula over the archives of the full program that are there.
func (r *release) formula() error {
	var blocks strings.Builder
	for _, b := range brewed {
		name := r.base(allPrograms[0], b.target) + ".tar.gz"
		sum, err := sha256File(filepath.Join(r.into, name))
		if os.IsNotExist(err) {
			continue
		} else if err != nil {
			return err
		}
		fmt.Fprintf(&blocks, "  %s do\n    %s do\n      url \"%s/releases/download/%s/%s\"\n      sha256 \"%s\"\n    end\n  end\n\n", b.on, b.arch, homepage, r.version, name, sum)
	}
	if blocks.Len() == 0 {
		return nil // without an archive there is nothing to install
	}
	return r.write("leasehold.rb", func(w io.Writer) error {
		_, err := fmt.Fprintf(w, `class Leasehold < Formula
  desc "Leases, locks, leader election and fencing"
  homepage "%s"
  version "%s"
  license "Apache-2.0"

%s  def install
    bin.install "leasehold"
    man1.install Dir["man/man1/*"]
    bash_completion.install "completions/leasehold.bash" => "leasehold"
    zsh_completion.install "completions/leasehold.zsh" => "_leasehold"
    fish_completion.install "completions/leasehold.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/leasehold version")
    system bin/"leasehold", "run", "--store", "file:#{testpath}/leases.db", "brew-test", "--", "true"
  end
end
`, homepage, strings.TrimPrefix(r.version, "v"), blocks.String())
		return err
	})
}
