package holdfast

import (
	"bytes"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
)

const stacksMax = 16 << 10

// printStacksOnSignal prints where handlers are when the worker asks for it, just
// before it kills the process: it puts the end of standard error into the error of
// the job.
func printStacksOnSignal() (stop func()) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR2)
	go func() {
		for range asked {
			os.Stderr.Write(handlerStacks())
		}
	}()
	return func() {
		signal.Stop(asked)
		close(asked)
	}
}

// handlerStacks returns the stacks of the goroutines that run handlers. Those that
// compute come last, because they do not look at their context.
func handlerStacks() []byte {
	whole := make([]byte, 1<<20)
	whole = whole[:runtime.Stack(whole, true)]
	var handlers [][]byte
	for _, stack := range bytes.Split(whole, []byte("\n\n")) {
		if bytes.Contains(stack, []byte("internal/pipe.(*Run).start")) {
			handlers = append(handlers, stack)
		}
	}
	computes := func(stack []byte) int {
		head, _, _ := bytes.Cut(stack, []byte("\n"))
		if bytes.Contains(head, []byte("[run")) { // running, runnable
			return 1
		}
		return 0
	}
	slices.SortStableFunc(handlers, func(a, b []byte) int { return computes(a) - computes(b) })
	all := append(bytes.Join(handlers, []byte("\n\n")), '\n')
	return all[max(0, len(all)-stacksMax):]
}
