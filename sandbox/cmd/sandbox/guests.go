package main

import "fmt"

// guestsMode is how guests run.
type guestsMode string

const (
	guestsProcess guestsMode = "process"
	guestsInstant guestsMode = "instant"
)

// String, Set and Type make it a flag.
func (g *guestsMode) String() string { return string(*g) }
func (g *guestsMode) Type() string   { return "mode" }

func (g *guestsMode) Set(s string) error {
	switch mode := guestsMode(s); mode {
	case guestsProcess, guestsInstant:
		*g = mode
		return nil
	}
	return fmt.Errorf("guests are %q: want %s or %s", s, guestsProcess, guestsInstant)
}
