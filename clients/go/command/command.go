// Package command puts the command holdfast into the programs that import it, so
// that holdfast.Run needs no other file:
//
//	import _ "holdfast-queue/holdfast/command"
//
// HOLDFAST_BIN comes before it, and PATH after it. The package has the command for
// Linux on x86-64; elsewhere importing it changes nothing. `./dev package go` makes
// the module with the command inside.
package command
