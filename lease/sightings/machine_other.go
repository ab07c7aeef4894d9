//go:build !linux

package sightings

import "errors"

var errLinuxOnly = errors.New("only on Linux do processes share a clock by which a sighting counts")

func boot() (string, error) { return "", errLinuxOnly }

func checkDir(string) error { return errLinuxOnly }

func readFile(string) ([]byte, error) { return nil, errLinuxOnly }
