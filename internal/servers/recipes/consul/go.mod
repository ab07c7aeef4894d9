module github.com/leasehold/leasehold/internal/servers/recipes/consul

go 1.26.0

require (
	github.com/hashicorp/consul v1.22.7
	github.com/hashicorp/consul/api v1.34.1
)
