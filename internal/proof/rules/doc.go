// Package rules holds what `leasehold standby init` prints for Prometheus, Terraform and Grafana,
// and the rules and the dashboard in contrib/, to the libraries of those. It is a module outside
// the workspace: none of their libraries may come into anybody's graph. scripts/rules runs it.
package rules
