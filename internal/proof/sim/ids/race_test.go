//go:build race

package ids

const raceDetector = true
