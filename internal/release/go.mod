module github.com/leasehold/leasehold/internal/release

go 1.26.0

require (
	github.com/CycloneDX/cyclonedx-go v0.12.0
	github.com/google/licensecheck v0.3.1
	golang.org/x/exp v0.0.0-20260410095643-746e56fc9e2f
	golang.org/x/mod v0.41.0
)

require golang.org/x/tools v0.51.0 // indirect
