//go:build bare

package main

import "errors"

// This build makes archives and deb packages, without the libraries for the other forms:
// scripts/package chooses it.

type platformImage struct{}

var errBare = errors.New("this build makes archives and deb packages alone: build it without the tag bare")

func (*release) rpm(program, target, string) error { return errBare }

func (*release) image(program, target, string) (platformImage, error) {
	return platformImage{}, errBare
}

func (*release) index(program, []platformImage) error { return errBare }
