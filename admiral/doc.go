// Package admiral is active/passive disaster recovery with the configuration, table rows and health endpoint of Admiral.
package admiral
