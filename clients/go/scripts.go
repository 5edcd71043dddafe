package holdfast

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"sync"
)

// The scripts that a client sends: byte for byte those of all languages.
// `./dev generate` writes them.
//
//go:embed lua/*.lua
var lua embed.FS

// A script is what Redis executes, and its digest.
type script struct{ sha1, text string }

var scripts = sync.OnceValue(func() map[string]script {
	all := map[string]script{}
	for _, name := range []string{"register", "enqueue", "enqueue_with", "await", "job", "cancel", "requeue"} {
		text, err := lua.ReadFile("lua/" + name + ".lua")
		if err != nil {
			panic(fmt.Sprintf("holdfast: this build lacks a script: %v", err))
		}
		sum := sha1.Sum(text)
		all[name] = script{hex.EncodeToString(sum[:]), string(text)}
	}
	return all
})
