// Package interop is nothing but tests: Leasehold's leases and the neighbours themselves on one
// table of DynamoDB Local, each keeping the other out.
//
// The crate dynamodb-lease, the AWS lock client for Java and dynamolock for Go run as the small
// programs in ../testdata, which the tests build outside the checkout, once for each state of their
// sources.
// Admiral's published algorithm, which is part of a large program, is written down again here, line
// by line, with its faults.
package interop
