//go:build pin

// Package pin keeps the programs that the sandbox builds among the
// requirements of this module, so that `go mod tidy` does not drop them. It
// comes in no binary: only a build with the tag pin sees it.
package pin
