module github.com/leasehold/leasehold/compat/admiral

go 1.26.0

require (
	github.com/leasehold/leasehold v0.0.0
	go.uber.org/goleak v1.3.0
	go.yaml.in/yaml/v3 v3.0.6
)

require golang.org/x/sys v0.50.0 // indirect
