package holdfast

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast-queue/holdfast/internal/testredis"
)

// vectors reads a file of tests/vectors, which other languages verify as well.
func vectors[T any](t *testing.T, name string) T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "tests", "vectors", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(n) * 24 * time.Hour
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// optionsOf makes options of the members of a vector.
func optionsOf(t *testing.T, job map[string]json.RawMessage) []EnqueueOption {
	t.Helper()
	text := func(name string) string {
		var value string
		json.Unmarshal(job[name], &value)
		return value
	}
	var options []EnqueueOption
	for name, raw := range job {
		switch name {
		case "id":
			options = append(options, ID(text(name)))
		case "in":
			options = append(options, In(duration(t, text(name))))
		case "at":
			at, err := time.Parse(time.RFC3339, text(name))
			if err != nil {
				t.Fatal(err)
			}
			options = append(options, At(at))
		case "max_attempts":
			n, _ := strconv.Atoi(string(raw))
			options = append(options, MaxAttempts(n))
		case "timeout":
			options = append(options, Timeout(duration(t, text(name))))
		case "keep":
			options = append(options, Keep(duration(t, text(name))))
		case "priority":
			options = append(options, Priority(Level(text(name))))
		case "start_within":
			options = append(options, StartWithin(duration(t, text(name))))
		case "expired":
			if text(name) == "dead" {
				options = append(options, ExpiredDead())
			}
		case "on_dead":
			options = append(options, OnDead(text(name)))
		case "replace_dead":
			options = append(options, ReplaceDead())
		case "unique":
			options = append(options, Unique(text(name)))
		case "unique_until":
			options = append(options, UniqueUntil(Moment(text(name))))
		case "unique_for":
			options = append(options, UniqueFor(duration(t, text(name))))
		case "on_conflict":
			options = append(options, OnConflict(Conflict(text(name))))
		case "debounce":
			options = append(options, Debounce(duration(t, text(name)), duration(t, text("max_wait"))))
		case "throttle":
			options = append(options, Throttle(duration(t, text(name))))
		case "headers":
			decoder := json.NewDecoder(bytes.NewReader(raw)) // in their order
			decoder.Token()
			for decoder.More() {
				name, _ := decoder.Token()
				value, _ := decoder.Token()
				options = append(options, Header(name.(string), value.(string)))
			}
		case "type", "payload", "max_wait":
		default:
			t.Fatalf("the vectors have an option %q that this test does not know", name)
		}
	}
	return options
}

func TestRecords(t *testing.T) {
	file := vectors[struct {
		Records []struct {
			Job     map[string]json.RawMessage
			Created int64
			Record  string
			Script  string
		}
	}](t, "records")
	for _, vector := range file.Records {
		var kind, payload string
		json.Unmarshal(vector.Job["type"], &kind)
		json.Unmarshal(vector.Job["payload"], &payload)
		var p plan
		if err := p.read(New(Options{}), nil, optionsOf(t, vector.Job)); err != nil {
			t.Errorf("%s: %v", vector.Record, err)
			continue
		}
		if record := string(p.record(kind, vector.Created, []byte(payload))); record != vector.Record {
			t.Errorf("expected %q, found %q", vector.Record, record)
		}
		if p.optional() != (vector.Script == "enqueue_with") {
			t.Errorf("expected the script %s for %q", vector.Script, vector.Record)
		}
	}
}

func TestIDs(t *testing.T) {
	file := vectors[struct {
		IDs []struct {
			MS, Number uint64
			ID         string
		}
	}](t, "ids")
	for _, vector := range file.IDs {
		if id := idOf(vector.MS, vector.Number); id != vector.ID {
			t.Errorf("expected %s, found %s", vector.ID, id)
		}
	}
	var maker idMaker
	var ids []string
	for range 100 {
		ids = append(ids, maker.next(1)...)
		ids = append(ids, maker.next(50)...)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(ids)) != 5100 {
		t.Error("expected ids that rise")
	}
	if age := time.Now().UnixMilli() - int64(maker.ms); age < 0 || age > 5000 {
		t.Errorf("expected ids with the time, found one that is %d ms old", age)
	}
}

func TestShards(t *testing.T) {
	file := vectors[struct {
		Shards []struct {
			Text   string
			CRC16  uint16
			Shards map[string]int
		}
	}](t, "shards")
	for _, vector := range file.Shards {
		if crc := crc16(vector.Text); crc != vector.CRC16 {
			t.Errorf("%s: expected %d, found %d", vector.Text, vector.CRC16, crc)
		}
		for n, shard := range vector.Shards {
			number, _ := strconv.Atoi(n)
			if found := shardOf(vector.Text, number); found != shard {
				t.Errorf("%s of %d: expected %d, found %d", vector.Text, number, shard, found)
			}
		}
	}
}

// An answer is an error as the client of Redis gives it.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

var _ redis.Error = answer("")

func TestWhatAClientDoesAboutAnError(t *testing.T) {
	file := vectors[struct {
		Errors []struct {
			Error, Do string
			Tags      []string
		}
	}](t, "redirects")
	words := map[remedy]string{fail: "fail", load: "load", follow: "follow", wait: "wait"}
	for _, vector := range file.Errors {
		does := words[remedyOf(fmt.Errorf("wrapped: %w", answer(vector.Error)))]
		var sharded *shardedError
		if does == "fail" && errors.As(refusal(answer(vector.Error)), &sharded) {
			does = "shards"
			if !slices.Equal(sharded.tags, vector.Tags) {
				t.Errorf("expected the tags %q, found %q", vector.Tags, sharded.tags)
			}
		}
		if does != vector.Do {
			t.Errorf("%s: expected %s, found %s", vector.Error, vector.Do, does)
		}
	}
}

func TestScripts(t *testing.T) {
	file := vectors[struct {
		Steps []struct {
			Says, Script, Key string
			Args              []string
			Answer            json.RawMessage
			Command           []string
		}
	}](t, "scripts")
	server := testredis.Start(t)
	ctx := context.Background()
	c := New(Options{URL: server.URL})
	defer c.Close()
	for _, step := range file.Steps {
		if step.Command != nil {
			words := make([]any, len(step.Command))
			for i, word := range step.Command {
				words[i] = word
			}
			if err := server.Client.Do(ctx, words...).Err(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		args := make([]any, len(step.Args))
		for i, arg := range step.Args {
			args[i] = arg
		}
		found, err := c.link.send(ctx, step.Script, step.Key, args...)
		var expected any
		decoder := json.NewDecoder(bytes.NewReader(step.Answer))
		decoder.UseNumber()
		if err := decoder.Decode(&expected); err != nil {
			t.Fatal(err)
		}
		if refused, ok := expected.(map[string]any); ok {
			text := strings.TrimPrefix(strings.TrimPrefix(refused["error"].(string), "ERR "), "holdfast: ")
			var sharded *shardedError
			if errors.As(err, &sharded) {
				err = errors.New("SHARDED holdfast: 2 " + strings.Join(sharded.tags, " "))
			}
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: expected the error %q, found %v", step.Says, text, err)
			}
			continue
		}
		if err != nil || !same(found, expected) {
			t.Errorf("%s: expected %v, found %v, %v", step.Says, expected, found, err)
		}
	}
}

func same(found, expected any) bool {
	if expected == "$ms" {
		return numberOf(found) > 1e12
	}
	if list, ok := expected.([]any); ok {
		values, ok := found.([]any)
		return ok && slices.EqualFunc(values, list, same)
	}
	return fmt.Sprint(found) == fmt.Sprint(expected)
}
