// Package charts proves the Helm charts in deploy/charts, by Helm's own library and a real API
// server. It is a module of its own, so that no other module requires Helm. It is made for tests.
package charts
