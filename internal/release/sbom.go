package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licensecheck"
)

// targets are the systems that the packages are built for: what is linked is told for all of them.
var targets = []string{"linux/amd64", "linux/arm64", "linux/arm", "darwin/amd64", "darwin/arm64", "windows/amd64"}

// linked is a module of which a package is linked into a command.
type linked struct {
	Path, Version, Dir, Sum string
	Uses                    map[string]bool // paths of modules
}

// listedPackage is what go list says of a package.
type listedPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Module     *struct {
		Path, Version, Dir, Sum string
		Main                    bool
	}
}

// writeSBOMs writes a CycloneDX document for each published command of the tree, whose last commit
// is that of a release, into the folder.
func writeSBOMs(tree, into string) error {
	w, err := load(tree)
	if err != nil {
		return err
	}
	when, err := repo(tree).git("show", "--no-patch", "--format=%cI", "HEAD")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for _, m := range w.Modules {
		for _, p := range m.Packages {
			if p.Name != "main" || !published(strings.TrimPrefix(p.Path, w.Path+"/")) {
				continue
			}
			mods, err := w.linked(p.Path)
			if err != nil {
				return err
			}
			doc := w.sbom(p.Path, m.Path, when, mods)
			var text bytes.Buffer
			if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(doc, cdx.SpecVersion1_6); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(into, path.Base(p.Path)+".cdx.json"), text.Bytes(), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// version returns the version at which the workspace's modules require each other.
func (w *Workspace) version() string {
	for _, m := range w.Modules {
		for _, r := range m.File.Require {
			if w.module(r.Mod.Path) != nil {
				return r.Mod.Version
			}
		}
	}
	return development
}

// linked returns the modules of which the command has packages, on any target.
func (w *Workspace) linked(command string) (map[string]*linked, error) {
	all := map[string]*linked{}
	for _, target := range targets {
		system, arch, _ := strings.Cut(target, "/")
		pkgs, err := listDeps(w, command, "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", target, err)
		}
		home := map[string]string{}
		for _, p := range pkgs {
			if p.Module == nil {
				continue
			}
			home[p.ImportPath] = p.Module.Path
			if all[p.Module.Path] == nil {
				l := &linked{Path: p.Module.Path, Version: p.Module.Version, Dir: p.Module.Dir, Sum: p.Module.Sum, Uses: map[string]bool{}}
				if p.Module.Main {
					l.Version = w.version()
				}
				all[p.Module.Path] = l
			}
		}
		for _, p := range pkgs {
			for _, imported := range p.Imports {
				if to := home[imported]; to != "" && p.Module != nil && to != p.Module.Path {
					all[p.Module.Path].Uses[to] = true
				}
			}
		}
	}
	return all, nil
}

func listDeps(w *Workspace, command string, env ...string) ([]listedPackage, error) {
	var stderr bytes.Buffer
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Module", command)
	cmd.Dir, cmd.Stderr = w.Root, &stderr
	cmd.Env = append(append(os.Environ(), "GOWORK="+w.file("go.work")), env...)
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, &stderr)
	}
	var all []listedPackage
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// sbom returns the document of the command of the module self.
func (w *Workspace) sbom(command, self, when string, mods map[string]*linked) *cdx.BOM {
	doc := cdx.NewBOM()
	license := licensed(w.Root)
	doc.Metadata = &cdx.Metadata{
		Timestamp: when,
		Component: &cdx.Component{
			BOMRef: "command", Type: cdx.ComponentTypeApplication, Name: path.Base(command), Version: w.version(),
			PackageURL: purl(self, w.version()), Licenses: license,
		},
	}
	components, dependencies := []cdx.Component{}, []cdx.Dependency{}
	for _, name := range slices.Sorted(maps.Keys(mods)) {
		m := mods[name]
		var uses []string
		for _, to := range slices.Sorted(maps.Keys(m.Uses)) {
			uses = append(uses, purl(to, mods[to].Version))
		}
		ref := purl(m.Path, m.Version)
		if name == self {
			ref = "command"
		} else {
			c := cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: ref, Licenses: licensed(m.Dir)}
			if w.module(name) != nil {
				c.Licenses = license
			}
			if m.Sum != "" {
				c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
			}
			components = append(components, c)
		}
		d := cdx.Dependency{Ref: ref}
		if len(uses) > 0 {
			d.Dependencies = &uses
		}
		dependencies = append(dependencies, d)
	}
	// Scanners know the standard library's bugs by this name.
	std := strings.TrimPrefix(runtime.Version(), "go")
	components = append(components, cdx.Component{BOMRef: purl("std", std), Type: cdx.ComponentTypeLibrary, Name: "std", Version: std, PackageURL: purl("std", std)})
	doc.Components, doc.Dependencies = &components, &dependencies
	return doc
}

func purl(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + version
}

// licensed returns the licenses whose text is in the folder's license files, or nil where no file
// is there or its text is unknown.
func licensed(dir string) *cdx.Licenses {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var ids []string
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !(strings.HasPrefix(name, "LICEN") || strings.HasPrefix(name, "COPYING")) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		for _, match := range licensecheck.Scan(text).Match {
			if !match.IsURL && !slices.Contains(ids, match.ID) {
				ids = append(ids, match.ID)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var all cdx.Licenses
	for _, id := range ids {
		all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &all
}
