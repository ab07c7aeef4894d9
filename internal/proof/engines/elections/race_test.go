//go:build race

package elections

const raceDetector = true
