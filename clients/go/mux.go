package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// A Handler runs a job whose arguments it does not know. A nil error means that
// the job is done.
type Handler func(ctx context.Context, run *JobRun) error

// A Mux has the handlers of a program, one for each type of job.
type Mux struct {
	kinds      map[string]*kind
	order      []string
	middleware []func(Handler) Handler
	schedules  []schedule
	starts     []func(context.Context) error
	stops      []func()
}

// A kind is a type of job.
type kind struct {
	name    string
	plan    plan // its options
	handler Handler
	retryOn []error
	deadOn  []error
	backoff func(attempt int, err error) time.Duration
}

// NewMux returns a Mux without handlers.
func NewMux() *Mux { return &Mux{kinds: map[string]*kind{}} }

// Use puts a function around each run. The first one is the outermost.
func (m *Mux) Use(middleware func(next Handler) Handler) {
	m.middleware = append(m.middleware, middleware)
}

// OnStart calls a function once in each handler process, before its first job,
// for example to open a pool of connections. It is not called in the process that
// becomes the worker. If it fails, the process is not ready.
func (m *Mux) OnStart(start func(ctx context.Context) error) { m.starts = append(m.starts, start) }

// OnStop calls a function when a handler process ends, the last one first.
func (m *Mux) OnStop(stop func()) { m.stops = append(m.stops, stop) }

// Handle declares the handler of the jobs with arguments of type T. It panics if
// there is one already, or if an option or the type is wrong.
//
// The context of a run ends at its time-out, when its job is cancelled, when its
// lock is lost, or when the worker stops and its patience is over;
// context.Cause(ctx) says which. A handler that returns an error, or panics, has
// failed: the job runs again after its back-off. RetryIn, Release, Dead and Cancel
// make errors that say something else.
func Handle[T Args](mux *Mux, handler func(ctx context.Context, job *Job[T]) error, options ...HandleOption) {
	add[T](mux, func(ctx context.Context, run *JobRun) error {
		job := &Job[T]{JobRun: run}
		if err := argsOf(run.Payload, &job.Args); err != nil {
			return err
		}
		return handler(ctx, job)
	}, options)
}

// HandleResult declares a handler that returns a result, which Result returns if
// the job has Keep. A []byte goes as it is, everything else as JSON, at most
// 64 KiB; nil is no result.
func HandleResult[T Args, R any](mux *Mux, handler func(ctx context.Context, job *Job[T]) (R, error),
	options ...HandleOption) {
	add[T](mux, func(ctx context.Context, run *JobRun) error {
		job := &Job[T]{JobRun: run}
		if err := argsOf(run.Payload, &job.Args); err != nil {
			return err
		}
		value, err := handler(ctx, job)
		if err != nil {
			return err
		}
		return run.setValue(value)
	}, options)
}

// HandleBytes declares the handler of a type whose payload is no JSON, or is not
// known. Its result is bytes; nil is no result.
func (m *Mux) HandleBytes(name string, handler func(ctx context.Context, run *JobRun) ([]byte, error),
	options ...HandleOption) {
	must(checkName(name, "a type"))
	m.add(&kind{name: name, handler: func(ctx context.Context, run *JobRun) error {
		result, err := handler(ctx, run)
		if err != nil || result == nil {
			return err
		}
		return run.setResult(result, false)
	}}, options)
}

// setValue keeps a result: bytes as they are, everything else as JSON.
func (r *JobRun) setValue(value any) error {
	switch value := value.(type) {
	case nil:
		return nil
	case json.RawMessage:
		if value == nil {
			return nil
		}
	case []byte:
		if value == nil {
			return nil
		}
		return r.setResult(value, false)
	}
	body, err := toJSON(value)
	if err != nil {
		return Dead(fmt.Errorf("result: %w", err))
	}
	if string(body) == "null" {
		return nil
	}
	return r.setResult(body, true)
}

func add[T Args](mux *Mux, handler Handler, options []HandleOption) {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		must(fmt.Errorf("expected a struct as the arguments of a handler, found %v", t))
	}
	must(checkArgs(t))
	var zero T
	k := &kind{name: zero.Kind(), handler: handler}
	must(checkName(k.name, "Kind()"))
	if own, ok := any(zero).(ArgsWithOptions); ok {
		for _, option := range own.Options() {
			must(option.applyType(&k.plan))
		}
	}
	mux.add(k, options)
}

func (m *Mux) add(k *kind, options []HandleOption) {
	for _, option := range options {
		must(option.applyHandle(k))
	}
	if _, known := m.kinds[k.name]; known {
		must(fmt.Errorf("expected one handler for the type '%s', found two", k.name))
	}
	m.kinds[k.name] = k
	m.order = append(m.order, k.name)
}

// must is for mistakes in the program, as in http.ServeMux.
func must(err error) {
	if err != nil {
		panic(fmt.Errorf("holdfast: %w", err))
	}
}

type handleOption func(*kind)

func (o handleOption) applyHandle(k *kind) error {
	o(k)
	return nil
}

// RetryOn names the errors, as errors.Is finds them, after which the job is tried
// again; after others it is dead. Without this option all are tried again.
func RetryOn(errs ...error) HandleOption {
	return handleOption(func(k *kind) { k.retryOn = append(k.retryOn, errs...) })
}

// DeadOn names the errors, as errors.Is finds them, after which the job is dead
// at once. They come before those of RetryOn.
func DeadOn(errs ...error) HandleOption {
	return handleOption(func(k *kind) { k.deadOn = append(k.deadOn, errs...) })
}

// Backoff is the wait after a failed attempt; attempt is 1 the first time. If it
// is negative, the worker's own counts.
func Backoff(wait func(attempt int, err error) time.Duration) HandleOption {
	return handleOption(func(k *kind) { k.backoff = wait })
}

func is(err error, targets []error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
