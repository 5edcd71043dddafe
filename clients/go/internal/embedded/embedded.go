// Package embedded executes a command that is a part of this program.
package embedded

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

var command []byte

// Set makes a file the command of this program. It is for init functions.
func Set(file []byte) { command = file }

// Is reports whether there is one.
func Is() bool { return len(command) > 0 }

// The number of memfd_create, which package syscall does not have.
var memfdCreate = map[string]uintptr{"amd64": 319, "arm64": 279}

const closeOnExec = 1

// Exec executes the command from a file in memory, which has no name and ends
// with the process. It returns only if it fails.
func Exec(words, environment []string) error {
	number, known := memfdCreate[runtime.GOARCH]
	if !known {
		return fmt.Errorf("expected the architecture amd64 or arm64, found %s", runtime.GOARCH)
	}
	name := []byte("holdfast\x00")
	fd, _, errno := syscall.Syscall(number, uintptr(unsafe.Pointer(&name[0])), closeOnExec, 0)
	if errno != 0 {
		return fmt.Errorf("making a file in memory: %w", errno)
	}
	file := os.NewFile(fd, "holdfast")
	defer file.Close()
	if _, err := file.Write(command); err != nil {
		return fmt.Errorf("writing a file in memory: %w", err)
	}
	if err := syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", fd), words, environment); err != nil {
		return fmt.Errorf("executing a file in memory: %w", err)
	}
	return nil
}
