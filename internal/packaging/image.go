//go:build !bare

package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nonroot is the user that programs of distroless images run as.
const nonroot = 65532

// platformImage is the image for one system.
type platformImage struct {
	image    v1.Image
	platform v1.Platform
}

// image makes an image of one layer: the program, authorities' certificates, the names of its user,
// time zones, and folders that the user may write to.
func (r *release) image(p program, t target, exe string) (platformImage, error) {
	made := platformImage{platform: v1.Platform{OS: "linux", Architecture: t.arch}}
	if t.arch == "armv7" {
		made.platform.Architecture, made.platform.Variant = "arm", "v7"
	}
	content, err := r.layer(exe)
	if err != nil {
		return made, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return made, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.made}, CreatedBy: "scripts/package", Author: "Leasehold"}})
	if err != nil {
		return made, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return made, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant, config.Created = "linux", made.platform.Architecture, made.platform.Variant, v1.Time{Time: r.made}
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/leasehold"}, User: fmt.Sprintf("%d:%d", nonroot, nonroot), WorkingDir: "/home/nonroot",
		Env:    []string{"PATH=/usr/bin", "HOME=/home/nonroot", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", "ZONEINFO=/usr/share/zoneinfo.zip"},
		Labels: r.labels(p),
	}
	made.image, err = mutate.ConfigFile(image, config)
	return made, err
}

func (r *release) labels(p program) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title": p.name, prefix + "version": strings.TrimPrefix(r.version, "v"), prefix + "revision": r.revision,
		prefix + "created": r.made.Format("2006-01-02T15:04:05Z"), prefix + "source": homepage, prefix + "licenses": "Apache-2.0",
		prefix + "description": "Leases, locks, leader election and fencing",
	}
}

// layer returns the files of an image as tar.
func (r *release) layer(exe string) ([]byte, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	zones, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		return nil, err
	}
	var authorities bytes.Buffer
	for root := range bundle.Roots() {
		// The others are trusted for some names only, which a file can't say.
		if root.Constraint == nil {
			if err := pem.Encode(&authorities, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
				return nil, err
			}
		}
	}
	user := fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/home/nonroot:/sbin/nologin\n", nonroot, nonroot)
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	dir := func(name string, mode fs.FileMode, owner int) {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: int64(mode), Uid: owner, Gid: owner, ModTime: r.made}))
	}
	put := func(name string, mode fs.FileMode, text []byte) {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode), Size: int64(len(text)), ModTime: r.made}))
		if err == nil {
			_, err = w.Write(text)
		}
	}
	for _, name := range []string{"etc/", "etc/ssl/", "etc/ssl/certs/", "home/", "usr/", "usr/bin/", "usr/share/", "var/", "var/lib/"} {
		dir(name, 0o755, 0)
	}
	dir("home/nonroot/", 0o700, nonroot)
	dir("var/lib/leasehold/", 0o700, nonroot)
	dir("tmp/", 0o1777, 0)
	put("etc/passwd", 0o644, []byte(user))
	put("etc/group", 0o644, fmt.Appendf(nil, "root:x:0:\nnonroot:x:%d:\n", nonroot))
	put("etc/ssl/certs/ca-certificates.crt", 0o644, authorities.Bytes())
	put("usr/share/zoneinfo.zip", 0o644, zones)
	put("usr/bin/leasehold", 0o755, program)
	err = errors.Join(err, w.Close()) // which writes the end
	return buffer.Bytes(), err
}

// index writes all images of a program as one OCI layout in a tar file, which skopeo, crane, podman
// and containerd read.
func (r *release) index(p program, images []platformImage) error {
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, i := range images {
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: i.image, Descriptor: v1.Descriptor{Platform: &i.platform}})
	}
	dir := filepath.Join(r.work, "oci", p.name)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	named := map[string]string{"org.opencontainers.image.ref.name": strings.TrimPrefix(r.version, "v")}
	if err := path.AppendIndex(all, layout.WithAnnotations(named)); err != nil {
		return err
	}
	digest, err := all.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s image: %v\n", p.name, digest)
	var list []file
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, name) // it is below dir
			list = append(list, file{filepath.ToSlash(rel), name, 0o644})
		}
		return err
	})
	if err != nil {
		return err
	}
	sortFiles(list)
	return r.write(fmt.Sprintf("%s_%s_oci.tar", p.name, strings.TrimPrefix(r.version, "v")), func(w io.Writer) error { return r.tar(w, list, nil) })
}
