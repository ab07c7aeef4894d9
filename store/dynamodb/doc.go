// Package dynamodb keeps leases in a DynamoDB table.
package dynamodb
