//go:build bare

package main

import "errors"

// This build makes archives, without the libraries for the other forms: scripts/package chooses it.

type platformImage struct{}

var errBare = errors.New("this build makes archives alone: build it without the tag bare")

func (*release) linuxPackage(string, program, target, string) error { return errBare }

func (*release) image(program, target, string) (platformImage, error) {
	return platformImage{}, errBare
}

func (*release) index(program, []platformImage) error { return errBare }
