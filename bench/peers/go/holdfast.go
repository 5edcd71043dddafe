package main

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast-queue/holdfast"
)

func holdfastServe(string, int) error {
	mux := holdfast.NewMux()
	holdfast.Handle(mux, func(context.Context, *holdfast.Job[nothing]) error { return nil })
	return holdfast.Run(context.Background(), mux, holdfast.Parallel(parallel))
}

func open(socket string) *holdfast.Client {
	return holdfast.New(holdfast.Options{URL: "unix://" + socket})
}

func enqueueMany(hf *holdfast.Client, n int) error {
	_, err := holdfast.EnqueueMany(context.Background(), hf, slices.Repeat([]nothing{{text}}, n))
	return err
}

func holdfastFill(socket string, jobs int) error {
	hf := open(socket)
	for range jobs / 1000 {
		if err := enqueueMany(hf, 1000); err != nil {
			return err
		}
	}
	return nil
}

// bare sends the script of an enqueue with the same arguments, by go-redis alone; ids count up.
type bare struct {
	client     *redis.Client
	sha        string
	number, id atomic.Int64
}

func openBare(socket string) (*bare, error) {
	script, err := os.ReadFile(filepath.Join(os.Getenv("HOLDFAST_LUA"), "enqueue.lua"))
	if err != nil {
		return nil, err
	}
	sum := sha1.Sum(script)
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, Protocol: 2})
	return &bare{client: client, sha: hex.EncodeToString(sum[:])}, client.ScriptLoad(context.Background(), string(script)).Err()
}

func (b *bare) send(n int) error {
	words := []any{"bare", b.number.Add(1), 0, 60000, 0}
	for range n {
		words = append(words, fmt.Sprintf("bare-%09d", b.id.Add(1)), 0, `{"type":"peer"}`+"\n"+`{"text":"`+text+`"}`)
	}
	return b.client.EvalSha(context.Background(), b.sha, []string{"hf:{default}:"}, append(words, "N")...).Err()
}

// rate is how many jobs a second this many calls enqueue, some of them at a time.
func rate(calls, together, jobsEach int, call func() error) (float64, error) {
	var left atomic.Int64
	left.Store(int64(calls))
	failed := make(chan error, together)
	var all sync.WaitGroup
	since := time.Now()
	for range together {
		all.Add(1)
		go func() {
			defer all.Done()
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	all.Wait()
	took := time.Since(since).Seconds()
	close(failed)
	return float64(calls*jobsEach) / took, <-failed
}

func holdfastEnqueue(socket string, jobs int) error {
	hf := open(socket)
	b, err := openBare(socket)
	if err != nil {
		return err
	}
	one := func() error {
		_, err := holdfast.Enqueue(context.Background(), hf, nothing{text})
		return err
	}
	ways := []struct {
		name                      string
		calls, together, jobsEach int
		call                      func() error
	}{
		{"one", jobs, 1, 1, one},
		{"bare_one", jobs, 1, 1, func() error { return b.send(1) }},
		{"together", 2 * jobs, many, 1, one},
		{"bare_together", 2 * jobs, many, 1, func() error { return b.send(1) }},
		{"many", jobs / 20, 1, many, func() error { return enqueueMany(hf, many) }},
		{"bare_many", jobs / 20, 1, many, func() error { return b.send(many) }},
	}
	found := map[string][]float64{}
	for round := range 1 + rounds { // the first one warms up
		for _, way := range ways {
			perS, err := rate(way.calls, way.together, way.jobsEach, way.call)
			if err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			if round > 0 {
				found[way.name] = append(found[way.name], perS)
			}
		}
	}
	medians := map[string]float64{}
	for name, list := range found {
		slices.Sort(list)
		medians[name] = list[rounds/2]
	}
	return say(medians)
}
