// Package pipe speaks the protocol "pipe 1" with a worker: it reads the jobs that
// the worker sends, runs them, and answers. docs/pipe.md defines the protocol.
package pipe

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// The variables by which a worker tells a program that it is one of a pool, and
// the one by which somebody tells it to join one.
const (
	EnvFD       = "HOLDFAST_FD"
	EnvVersions = "HOLDFAST_PIPE"
	EnvSocket   = "HOLDFAST_SOCKET"
)

const version = 1

// ExitSetup is the exit status of a program that a worker started in a way that
// it does not understand.
const ExitSetup = 78

// Started reports whether a worker started this process as a part of a pool.
func Started() bool { return os.Getenv(EnvFD) != "" }

// Joins reports whether this process was started to join a worker.
func Joins() bool { return !Started() && os.Getenv(EnvSocket) != "" }

// Open returns the connection to the worker that started this process, or that it
// joins.
func Open() (io.ReadWriteCloser, error) {
	if Joins() {
		return join(os.Getenv(EnvSocket))
	}
	return take()
}

// join leaves the variable in the environment: a debugger may run the program
// again.
func join(path string) (io.ReadWriteCloser, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("expected a worker with --listen at the path in %s, found none: %w", EnvSocket, err)
	}
	return conn, nil
}

// take takes the socket that the worker left in the environment. The variables
// go, and the descriptor is closed on exec: no program that this one starts
// takes itself for a handler.
func take() (io.ReadWriteCloser, error) {
	versions, number := os.Getenv(EnvVersions), os.Getenv(EnvFD)
	os.Unsetenv(EnvVersions)
	os.Unsetenv(EnvFD)
	if !speaks(versions) {
		return nil, fmt.Errorf("expected version %d of the protocol in %s, found %q", version, EnvVersions, versions)
	}
	fd, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("expected the number of a socket in %s, found %q", EnvFD, number)
	}
	kind, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TYPE)
	if err != nil || kind != syscall.SOCK_STREAM {
		return nil, fmt.Errorf("expected a stream socket at descriptor %d of %s", fd, EnvFD)
	}
	syscall.CloseOnExec(int(fd))
	if err := syscall.SetNonblock(int(fd), true); err != nil { // so the runtime polls it
		return nil, fmt.Errorf("%s: %w", EnvFD, err)
	}
	return os.NewFile(uintptr(fd), "holdfast"), nil
}

func speaks(versions string) bool {
	for _, offered := range strings.Fields(versions) {
		if offered == strconv.Itoa(version) {
			return true
		}
	}
	return false
}
