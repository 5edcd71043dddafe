// Package command puts the command holdfast into the programs that import it, so
// that holdfast.Run needs no other file:
//
//	import _ "holdfast-queue/holdfast/command"
//
// HOLDFAST_BIN comes before it, and PATH after it. `./dev package go`
// makes the module with the command inside, for Linux on x86-64, or on arm64 with
// that word; on other machines importing it changes nothing. It is a module of its
// own, which go.mod has to require and replace: docs/go.md, "Installing".
package command
