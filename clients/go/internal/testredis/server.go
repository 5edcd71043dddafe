// Package testredis starts private servers for tests.
package testredis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Server is a redis-server of its own.
type Server struct {
	URL     string
	Addr    string // of a node of a cluster
	Client  *redis.Client
	Dir     string
	args    []string
	command *exec.Cmd
}

// Start starts a server that ends with the test, which is skipped without the
// command redis-server.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-go-") // t.TempDir() may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "redis.sock")
	s := &Server{URL: "unix://" + socket, Dir: dir, Client: redis.NewClient(&redis.Options{Network: "unix", Addr: socket}),
		args: append([]string{"--port", "0", "--unixsocket", socket, "--dir", dir, "--save", ""}, args...)}
	s.run(t)
	return s
}

func isFree(port int) bool {
	free, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	free.Close()
	return true
}

// FreeAddr returns an address of this machine where nothing listened a moment
// ago. Its port is below those that the kernel gives to connections, to which it
// would be lost; the port that is 10,000 higher, that of the bus of a node, is
// free as well.
func FreeAddr(t testing.TB) string {
	t.Helper()
	for {
		if port := 10000 + rand.IntN(12000); isFree(port) && isFree(port+10000) {
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
}

// StartNode starts a node of a cluster.
func StartNode(t testing.TB) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-go-")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(FreeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + port
	s := &Server{URL: "redis://" + addr, Addr: addr, Dir: dir, Client: redis.NewClient(&redis.Options{Addr: addr}),
		args: []string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--cluster-enabled", "yes"}}
	s.run(t)
	return s
}

func (s *Server) run(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		s.Client.Close()
		s.Kill()
		os.RemoveAll(s.Dir)
	})
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("no redis-server in PATH")
	}
	s.Run(t)
}

// Run starts the process, again after Kill.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	s.command = exec.Command("redis-server", s.args...)
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	Until(t, "redis-server answers", func() bool { return s.Client.Ping(context.Background()).Err() == nil })
}

// Kill ends the process.
func (s *Server) Kill() {
	if s.command != nil && s.command.Process != nil {
		s.command.Process.Kill()
		s.command.Wait()
		s.command = nil
	}
}

// Until waits for a condition.
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 5 minutes: %s", what)
		}
	}
}
