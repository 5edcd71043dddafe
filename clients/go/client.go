package holdfast

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"holdfast-queue/holdfast/internal/hook"
)

// Options are those of New. The zero value is good.
type Options struct {
	// URL is the address of Redis: redis://, rediss://, unix://,
	// redis+sentinel://h1,h2/master or redis+cluster://h1,h2. Without it that is
	// REDIS_URL, or redis://localhost:6379/0.
	URL string

	// Redis is a client that the program has already: a client of one server, of
	// Sentinel or of a cluster. It comes before URL, and Close leaves it open.
	Redis redis.UniversalClient

	Namespace string        // the beginning of all keys; "hf" if it is empty
	Queue     string        // of jobs that name none; "default" if it is empty
	Deadline  time.Duration // how long a call waits for Redis before it fails with ErrNoAnswer; 0: 5 s
	Remember  time.Duration // how long Redis remembers requests, so that one that comes twice is executed once; 0: 60 s; at least twice the deadline
}

// A Client enqueues jobs. It may be used by any number of goroutines.
type Client struct {
	link      link
	own       bool
	namespace string
	queue     string
	remember  int64
	err       error // of the options: every call returns it

	hooks []func(context.Context, *Call) error
	sink  hook.Sink // of tests

	ids        idMaker
	registered sync.Map // queue: true
	shards     sync.Map // queue: []string, its tags
	turn       atomic.Uint64

	mutex sync.Mutex
	lanes []*lane
	clock clock
}

// A clock is Redis's at its last answer.
type clock struct {
	redis int64     // ms
	at    time.Time // of this machine
}

// A lane is a name under which one request at a time is numbered, so that Redis
// executes it once.
type lane struct {
	producer string
	number   int64
}

// New returns a client. It connects at the first call. If an option is wrong,
// each call returns an error that says so, and Err does.
func New(options Options) *Client {
	c := &Client{
		namespace: cmp.Or(options.Namespace, "hf"),
		queue:     cmp.Or(options.Queue, "default"),
		link:      link{client: options.Redis, deadline: cmp.Or(options.Deadline, 5*time.Second)},
	}
	c.err = cmp.Or(
		checkName(c.namespace, "Options.Namespace"),
		checkName(c.queue, "Options.Queue"),
		millis(new(int64), c.link.deadline, "Options.Deadline", time.Millisecond, delayMax),
		millis(&c.remember, cmp.Or(options.Remember, time.Minute), "Options.Remember", time.Millisecond, delayMax),
	)
	c.remember = max(c.remember, 2*c.link.deadline.Milliseconds())
	if c.err == nil && c.link.client == nil {
		url := cmp.Or(options.URL, os.Getenv("REDIS_URL"), "redis://localhost:6379/0")
		c.link.client, c.err = connect(url, c.link.deadline)
		c.own = c.err == nil
	}
	return c
}

// Err returns what is wrong with the options of New, or nil.
func (c *Client) Err() error { return c.err }

// Close closes the connections, unless the program brought its own client.
func (c *Client) Close() error {
	if !c.own {
		return nil
	}
	return c.link.client.Close()
}

// OnEnqueue calls a function for each job before it is enqueued, for example to
// set a header from the context. An error of it is that of the call. It is not
// for use while jobs are enqueued.
func (c *Client) OnEnqueue(hook func(ctx context.Context, call *Call) error) {
	c.hooks = append(c.hooks, hook)
}

// A Call is a job that is about to be enqueued.
type Call struct {
	Type  string
	Queue string
	Args  any // as they were given
	plan  *plan
}

// Header returns a header of the job, or "".
func (c *Call) Header(name string) string {
	for _, h := range c.plan.headers {
		if h.name == name {
			return h.value
		}
	}
	return ""
}

// SetHeader sets a header of the job.
func (c *Call) SetHeader(name, value string) {
	c.plan.headers = setHeader(c.plan.headers, name, value)
}

// prefix is the beginning of the keys of a queue.
func (c *Client) prefix(tag string) string { return c.namespace + ":{" + tag + "}:" }

func (c *Client) takeLane() *lane {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if n := len(c.lanes); n > 0 {
		lane := c.lanes[n-1]
		c.lanes = c.lanes[:n-1]
		return lane
	}
	return &lane{producer: randomName()}
}

func (c *Client) putLane(lane *lane) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.lanes = append(c.lanes, lane)
}

// register makes a queue known to tools, before its first job.
func (c *Client) register(ctx context.Context, queue string) error {
	if _, known := c.registered.Load(queue); known {
		return nil
	}
	answer, err := c.link.send(ctx, "register", c.prefix("/"), queue)
	if err != nil {
		return err
	}
	if code := intOf(answer[0]); code != 0 {
		return &RefusedError{fmt.Sprintf("register answered %d", code)}
	}
	c.noteTime(answer)
	c.registered.Store(queue, true)
	return nil
}

func (c *Client) noteTime(answer []any) {
	if len(answer) > 1 {
		c.mutex.Lock()
		c.clock = clock{intOf(answer[1]), time.Now()}
		c.mutex.Unlock()
	}
}

// knownUntil tells until when Redis will remember a request that is sent now. It
// is earlier if the machine was suspended.
func (c *Client) knownUntil() int64 {
	c.mutex.Lock()
	last := c.clock
	c.mutex.Unlock()
	return last.redis + time.Since(last.at).Milliseconds() + c.remember
}

func intOf(value any) int64 {
	number, _ := value.(int64)
	return number
}

func textOf(value any) string {
	text, _ := value.(string)
	return text
}
