// A program with a command inside, for the tests: the file that COMMAND names.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"holdfast-queue/holdfast"
	"holdfast-queue/holdfast/internal/embedded"
)

// Greet is a job.
type Greet struct {
	Name string `json:"name"`
}

// Kind is the type.
func (Greet) Kind() string { return "greet" }

// Options keep the greeting.
func (Greet) Options() []holdfast.TypeOption { return []holdfast.TypeOption{holdfast.Keep(time.Hour)} }

func main() {
	command, err := os.ReadFile(os.Getenv("COMMAND"))
	if err != nil {
		log.Fatal(err)
	}
	embedded.Set(command)
	mux := holdfast.NewMux()
	holdfast.HandleResult(mux, func(_ context.Context, job *holdfast.Job[Greet]) (string, error) {
		return "hello, " + job.Args.Name, nil
	})
	log.Fatal(holdfast.Run(context.Background(), mux))
}
