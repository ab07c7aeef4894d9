// Package chef tests a cookbook for Chef against a lock server: see README.md.
package chef
