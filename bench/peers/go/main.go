// Command peer is Holdfast for Go and Asynq, among the queues that ../README.md
// describes: peer holdfast|asynq serve|fill|enqueue SOCKET [JOBS].
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	parallel = 100 // jobs of a worker at a time
	warmUp   = 0.1 // of the jobs of a rate
	many     = 100 // jobs in a call
	rounds   = 7   // of `enqueue`
)

var text = strings.Repeat("x", 89) // {"text":"..."} has 100 bytes

// nothing is the arguments of a job of both queues.
type nothing struct {
	Text string `json:"text"`
}

func (nothing) Kind() string { return "peer" }

func main() {
	verbs := map[string]func(socket string, jobs int) error{
		"holdfast serve": holdfastServe, "holdfast fill": holdfastFill, "holdfast enqueue": holdfastEnqueue,
		"asynq serve": asynqServe, "asynq fill": asynqFill,
	}
	words := append(os.Args[1:], "", "", "", "0")
	jobs, _ := strconv.Atoi(words[3])
	verb := verbs[words[0]+" "+words[1]]
	if verb == nil {
		fmt.Fprintln(os.Stderr, "expected peer holdfast|asynq serve|fill|enqueue SOCKET [JOBS]")
		os.Exit(2)
	}
	if err := verb(words[2], jobs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// say writes figures as the last line.
func say(figures map[string]float64) error { return json.NewEncoder(os.Stdout).Encode(figures) }

// fill enqueues this many jobs one by one, and says how fast; the first are not counted.
func fill(jobs int, enqueue func() error) error {
	first := int(float64(jobs) * warmUp)
	var since time.Time
	for i := range jobs {
		if i == first {
			since = time.Now()
		}
		if err := enqueue(); err != nil {
			return err
		}
	}
	return say(map[string]float64{"per_s": float64(jobs-first) / time.Since(since).Seconds()})
}
