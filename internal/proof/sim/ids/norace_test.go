//go:build !race

package ids

const raceDetector = false
