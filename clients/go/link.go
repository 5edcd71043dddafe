package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	firstPause   = 20 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// A link sends requests to Redis until they are answered.
type link struct {
	client   redis.UniversalClient
	deadline time.Duration
}

// A shardedError says that a queue is divided: its jobs belong to the queues
// with these tags.
type shardedError struct{ tags []string }

func (e *shardedError) Error() string { return "the queue has shards: " + strings.Join(e.tags, " ") }

// What to do about an error of Redis.
type remedy int

const (
	fail   remedy = iota // tell the caller
	load                 // load the script, then send the request again
	follow               // read the table of slots anew, and ask the node that it names
	wait                 // send the request again to the same node
)

// A cluster that moves a slot answers ASK or TRYAGAIN: the request waits, and
// never follows ASK, because the other node has only some of the keys yet.
var later = []string{"ASK ", "TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY", "NOREPLICAS"}

func remedyOf(err error) remedy {
	var answer redis.Error
	if !errors.As(err, &answer) {
		return wait // of the connection
	}
	text := answer.Error()
	switch {
	case strings.HasPrefix(text, "NOSCRIPT"):
		return load
	case strings.HasPrefix(text, "MOVED "):
		return follow
	}
	for _, prefix := range later {
		if strings.HasPrefix(text, prefix) {
			return wait
		}
	}
	return fail
}

// refusal translates an error for the caller.
func refusal(err error) error {
	text := err.Error()
	if at := strings.Index(text, "SHARDED holdfast: "); at >= 0 {
		if words := strings.Fields(text[at:]); len(words) > 3 {
			return &shardedError{words[3:]}
		}
	}
	if at := strings.Index(text, "holdfast: "); at >= 0 { // Redis adds the script and its line
		text, _, _ = strings.Cut(text[at+len("holdfast: "):], " script: ")
	}
	return &RefusedError{text}
}

// send executes a script. It sends the request again until it is answered, until
// the deadline: the arguments must make that harmless.
func (l *link) send(ctx context.Context, name, key string, args ...any) ([]any, error) {
	return l.sendKnown(ctx, 0, name, key, args...)
}

// sendKnown sends a numbered request, which Redis remembers until a time of its
// clock. If it is sent again, it must not come later, also if that clock was set
// forward.
func (l *link) sendKnown(ctx context.Context, knownUntil int64, name, key string, args ...any) ([]any, error) {
	script := scripts()[name]
	words := append([]any{"EVALSHA", script.sha1, 1, key}, args...)
	answer, err := l.persist(ctx, key, knownUntil, words, []any{"SCRIPT", "LOAD", script.text})
	if err != nil {
		return nil, err
	}
	list, ok := answer.([]any)
	if !ok || len(list) < 1 {
		return nil, &RefusedError{fmt.Sprintf("the script %s answered %v", name, answer)}
	}
	return list, nil
}

func (l *link) persist(ctx context.Context, key string, knownUntil int64, words, loading []any) (any, error) {
	end, pause := time.Now().Add(l.deadline), firstPause
	if ctx.Err() != nil { // nothing was sent
		return nil, context.Cause(ctx)
	}
	for {
		answer, err := l.do(ctx, key, words)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoAnswer, context.Cause(ctx))
		}
		if errors.Is(err, redis.ErrClosed) {
			return nil, err
		}
		remedy := remedyOf(err)
		if remedy == load {
			if _, err = l.do(ctx, key, loading); err == nil {
				continue
			}
			if remedy = remedyOf(err); remedy == load {
				remedy = fail
			}
		}
		if remedy == fail {
			return nil, refusal(err)
		}
		if !time.Now().Before(end) {
			return nil, fmt.Errorf("%w in %v: %w", ErrNoAnswer, l.deadline, err)
		}
		if knownUntil != 0 {
			words = slices.Clone(words) // the client may still have them
			words[6] = knownUntil
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		pause = min(2*pause, longestPause)
	}
}

// do sends one command to the node that has the key.
func (l *link) do(ctx context.Context, key string, words []any) (any, error) {
	node, err := l.node(ctx, key)
	if err != nil {
		return nil, err
	}
	answer, err := node.Do(ctx, words...).Result()
	if cluster, ok := l.client.(*redis.ClusterClient); ok && err != nil {
		if remedy := remedyOf(err); remedy == follow || remedy == wait {
			cluster.ReloadState(ctx)
		}
	}
	return answer, err
}

// node returns the client of the node that has a key. That of a whole cluster
// would follow ASK.
func (l *link) node(ctx context.Context, key string) (redis.UniversalClient, error) {
	if cluster, ok := l.client.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return l.client, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
