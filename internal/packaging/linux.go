package main

import "embed"

// What both forms of a package for Linux say.
const (
	maintainer = "The Leasehold authors <leasehold@invalid>"
	license    = "Apache-2.0"
	summary    = "Leases, locks, leader election and fencing"
	settings   = "/etc/leasehold/env"
	runFolder  = "/etc/leasehold/run" // for settings of leasehold-run@.service; empty at first
)

// scripts are what dpkg runs; rpm runs them under names of its own.
var scripts = []string{"postinst", "prerm", "postrm"}

//go:embed files
var embedded embed.FS

// other is the program whose package this one's takes the place of.
func (p program) other() string {
	if p.name == allPrograms[0].name {
		return allPrograms[1].name
	}
	return allPrograms[0].name
}

func (p program) description() string {
	text := summary + "\nLeasehold runs a program once at a time, on one machine or on many."
	if p.name != allPrograms[0].name {
		text += "\nThis light build knows the stores file, HTTP, etcd, PostgreSQL and Redis."
	}
	return text
}
