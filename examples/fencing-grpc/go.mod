module github.com/leasehold/leasehold/examples/fencing-grpc

go 1.26.0

require (
	github.com/leasehold/leasehold v0.0.0
	github.com/leasehold/leasehold/fence/fencegrpc v0.0.0
	google.golang.org/grpc v1.83.2
	google.golang.org/protobuf v1.36.11
)

require (
	golang.org/x/net v0.58.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.41.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260803160001-6ac0973c030d // indirect
)
