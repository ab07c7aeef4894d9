// Package pair writes what an active and a passive instance need outside of the program: a table,
// permissions, objects of Kubernetes, alarms and a dashboard.
package pair
