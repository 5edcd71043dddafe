package pipe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

func TestMembers(t *testing.T) {
	for _, c := range []struct{ line, found string }{
		{`{}`, ""},
		{` { "t" : "job" , "n":7.0,"c" : null } ` + "\r\n", `t="job" n=7.0 c=null `},
		{`{"\u0074":"x","t":"y","T":"z"}`, `t="x" t="y" T="z" `},
		{`{"a":{"b":[1,"]}",{"c":"\\\"}"}]},"d":1e999,"e":"\ud800"}`, `a={"b":[1,"]}",{"c":"\\\"}"}]} d=1e999 e="\ud800" `},
		{`{"a":` + strings.Repeat("[", 2048) + strings.Repeat("]", 2048) + `}`, "a=" + strings.Repeat("[", 2048) + strings.Repeat("]", 2048) + " "},
	} {
		var found strings.Builder
		err := members([]byte(c.line), func(name, value []byte) error {
			_, err := fmt.Fprintf(&found, "%s=%s ", name, value)
			return err
		})
		if err != nil || found.String() != c.found {
			t.Errorf("%s: found %q, %v", c.line, found.String(), err)
		}
	}
	for _, line := range []string{"", "\n", "[]", "{", `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1}x`, `{"a":"b`, `{"a":[1}`, `{a:1}`, `{"a":1 "b":2}`, `{"a\u":1}`} {
		if err := members([]byte(line), func(_, _ []byte) error { return nil }); err == nil {
			t.Errorf("%q: expected an error", line)
		}
	}
}

func FuzzMembers(f *testing.F) {
	for _, line := range []string{`{}`, `{"t":"job","n":7.0,"a":[{"b":"\""}]}`, `{"a":"\ud800"}`, `{"a"`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		n := 0
		err := members(line, func(_, _ []byte) error { n++; return nil })
		var object map[string]json.RawMessage
		if json.Unmarshal(line, &object) == nil && object != nil && (err != nil || n < len(object)) {
			t.Errorf("%q: found %d members of %d, %v", line, n, len(object), err)
		}
	})
}

func TestNumbers(t *testing.T) {
	for text, number := range map[string]int64{"0": 0, "7": 7, "7.0": 7, "70e-1": 7, "9007199254740992": 1 << 53, "-0": 0} {
		if found, err := whole([]byte(text)); err != nil || found != number {
			t.Errorf("%s: found %d, %v", text, found, err)
		}
	}
	for _, text := range []string{"-1", "0.5", "9007199254740993", "1e999", `"7"`, "true", ""} {
		if found, err := whole([]byte(text)); err == nil {
			t.Errorf("%s: expected an error, found %d", text, found)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		found string
	}{{"é", 1, ""}, {"aé", 2, "a"}, {"aé", 3, "aé"}, {"\xff\xff\xff\xff\xff\xff", 5, "\xff\xff\xff\xff\xff"}, {"", 0, ""}} {
		if found := Cut(c.text, c.limit); found != c.found {
			t.Errorf("%q, %d: found %q", c.text, c.limit, found)
		}
	}
}

// A worker is the other end of a program under test.
type worker struct {
	t     *testing.T
	conn  net.Conn
	lines *bufio.Reader
	ended chan error
}

func serve(t *testing.T, ctx context.Context, handler Handler) *worker {
	t.Helper()
	ours, theirs := net.Pipe()
	w := &worker{t: t, conn: ours, lines: bufio.NewReader(ours), ended: make(chan error, 1)}
	go func() {
		in := iotest.OneByteReader(theirs)
		w.ended <- Serve(ctx, struct {
			io.Reader
			io.Writer
		}{in, theirs}, Ready{Client: "test", Parallel: 8, Types: []string{}}, handler)
		theirs.Close()
	}()
	t.Cleanup(func() { ours.Close() })
	if line := w.line(); line != `{"t":"ready","v":1,"client":"test","parallel":8,"types":[]}` {
		t.Errorf("found %s", line)
	}
	return w
}

func (w *worker) line() string {
	w.t.Helper()
	w.conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	line, err := w.lines.ReadString('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (w *worker) body(n int) string {
	w.t.Helper()
	body := make([]byte, n)
	if _, err := io.ReadFull(w.lines, body); err != nil {
		w.t.Fatal(err)
	}
	return string(body)
}

func (w *worker) send(text string) {
	w.t.Helper()
	w.conn.SetWriteDeadline(time.Now().Add(2 * time.Minute))
	if _, err := io.WriteString(w.conn, text); err != nil {
		w.t.Fatal(err)
	}
}

func (w *worker) expect(line string) {
	w.t.Helper()
	if found := w.line(); found != line {
		w.t.Errorf("expected %s, found %s", line, found)
	}
}

func (w *worker) ends(expected error) {
	w.t.Helper()
	select {
	case err := <-w.ended:
		if !errors.Is(err, expected) {
			w.t.Errorf("expected %v, found %v", expected, err)
		}
	case <-time.After(2 * time.Minute):
		w.t.Error("expected it to end")
	}
}

func TestFrames(t *testing.T) {
	w := serve(t, context.Background(), func(ctx context.Context, run *Run) Verdict {
		if Current(ctx) != run {
			t.Error("expected the run in its context")
		}
		if deadline, ok := ctx.Deadline(); ok != (run.Timeout > 0) || (ok && time.Until(deadline) > run.Timeout) {
			t.Errorf("found the deadline %v, %v", deadline, ok)
		}
		run.Progress(40, "é\n"+strings.Repeat("x", 300))
		run.SetCheckpoint(nil)
		run.Log([]byte("one\ntwo"))
		in := 1500 * time.Millisecond
		return Verdict{Kind: Retry, Error: string(run.Payload) + "\xff" + string(run.Checkpoint), Body: []byte("stack"), In: &in}
	})
	w.send(`{"t":"future","n":3,"c":2,"run":{"a":1},"why":7}` + "\n" + "12345" + `{"t":"ping"}` + "\n")
	w.expect(`{"t":"pong"}`)
	w.send(`{"n":2,"c":1,"run":70e-1,"timeout":null,"n":2,"t":"job"}` + "\n" + "abc")
	w.expect(`{"t":"progress","run":7,"percent":40,"note":"é\n` + strings.Repeat("x", 253) + `"}`)
	w.expect(`{"t":"checkpoint","run":7,"n":0}`)
	w.expect(`{"t":"log","run":7,"n":7}`)
	if body := w.body(7); body != "one\ntwo" {
		t.Errorf("found %q", body)
	}
	w.expect(`{"t":"retry","run":7,"in":1500,"error":"ab\ufffdc","n":5}`)
	if body := w.body(5); body != "stack" {
		t.Errorf("found %q", body)
	}
	w.send(`{"t":"stop","kill_in":1000}` + "\n")
	w.ends(nil)
}

func TestCancelEndsOneContext(t *testing.T) {
	causes := sync.Map{}
	w := serve(t, context.Background(), func(ctx context.Context, run *Run) Verdict {
		<-ctx.Done()
		causes.Store(run.ID, context.Cause(ctx))
		return Verdict{Kind: Done, Body: []byte{}}
	})
	for i, why := range []struct {
		word string
		err  error
	}{{"timeout", ErrTimeout}, {"cancelled", ErrCancelled}, {"stop", ErrStopping}, {"lost", ErrLost}, {"new word", ErrCancelled}} {
		w.send(fmt.Sprintf(`{"t":"job","run":%d,"id":"%d","type":"t"}`+"\n", 2*i, 2*i))
		w.send(fmt.Sprintf(`{"t":"job","run":%d,"id":"%d","type":"t"}`+"\n", 2*i+1, 2*i+1))
		w.send(fmt.Sprintf(`{"t":"cancel","run":99,"why":"lost"}`+"\n"+`{"t":"cancel","run":%d,"why":%q,"kill_in":5}`+"\n", 2*i, why.word))
		w.expect(fmt.Sprintf(`{"t":"done","run":%d,"n":0}`, 2*i))
		if cause, _ := causes.Load(fmt.Sprint(2 * i)); cause != why.err {
			t.Errorf("%s: found %v", why.word, cause)
		}
	}
	w.send(`{"t":"stop","kill_in":1000}` + "\n" + `{"t":"stop"}` + "\n")
	for i := range 5 {
		w.send(fmt.Sprintf(`{"t":"cancel","run":%d,"why":"stop"}`+"\n", 2*i+1))
		w.expect(fmt.Sprintf(`{"t":"done","run":%d,"n":0}`, 2*i+1))
	}
	w.ends(nil)
}

func TestTheEndOfTheWorkerEndsAllRuns(t *testing.T) {
	ended := make(chan error, 1)
	w := serve(t, context.Background(), func(ctx context.Context, run *Run) Verdict {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return Verdict{Kind: Retry}
	})
	w.send(`{"t":"job","run":1}` + "\n")
	w.send(`{"t":"job","run":2,"n":100}` + "\n" + "half")
	w.conn.Close()
	w.ends(ErrGone)
	if err := <-ended; err != ErrGone {
		t.Errorf("found %v", err)
	}
}

func TestTheEndOfTheBaseAsksToBeReplaced(t *testing.T) {
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
	w := serve(t, ctx, func(ctx context.Context, run *Run) Verdict {
		if ctx.Err() != nil || ctx.Value(key{}) != "value" {
			t.Errorf("found %v, %v", ctx.Err(), ctx.Value(key{}))
		}
		return Verdict{Kind: Done}
	})
	cancel()
	w.expect(`{"t":"leave"}`)
	w.send(`{"t":"job","run":1}` + "\n")
	w.expect(`{"t":"done","run":1}`)
	w.send(`{"t":"stop"}` + "\n")
	w.ends(nil)
}

func TestAGoroutineThatEndsIsAFailure(t *testing.T) {
	w := serve(t, context.Background(), func(ctx context.Context, run *Run) Verdict {
		runtime.Goexit()
		return Verdict{}
	})
	w.send(`{"t":"job","run":1}` + "\n")
	w.expect(`{"t":"retry","run":1,"error":"the handler ended its goroutine (runtime.Goexit)"}`)
}

func TestFramesThatCannotBeRead(t *testing.T) {
	for _, line := range []string{"\n", "[]\n", `{"t":"job","run":-1}` + "\n", `{"t":"job","run":1,"n":1e10}` + "\n",
		`{"t":"cancel","run":"x"}` + "\n", strings.Repeat("x", maxLine+1)} {
		w := serve(t, context.Background(), func(context.Context, *Run) Verdict { return Verdict{Kind: Done} })
		go io.WriteString(w.conn, line)
		err := <-w.ended
		if err == nil || errors.Is(err, ErrGone) || !strings.HasPrefix(err.Error(), "reading a frame of the worker") {
			t.Errorf("%.40q: found %v", line, err)
		}
	}
}

func TestALongLogIsSplitAtLines(t *testing.T) {
	line := strings.Repeat("x", 1000) + "\n"
	w := serve(t, context.Background(), func(ctx context.Context, run *Run) Verdict {
		run.Log([]byte(strings.Repeat(line, 40)))
		return Verdict{Kind: Done}
	})
	w.send(`{"t":"job","run":1}` + "\n")
	for _, n := range []int{16, 16, 8} {
		w.expect(fmt.Sprintf(`{"t":"log","run":1,"n":%d}`, n*1001))
		if body := w.body(n * 1001); body != strings.Repeat(line, n) {
			t.Error("expected whole lines")
		}
	}
	w.expect(`{"t":"done","run":1}`)
}

// A slow writer counts writes.
type slow struct {
	gate   chan struct{}
	mutex  sync.Mutex
	writes []int
}

func (s *slow) Write(data []byte) (int, error) {
	s.mutex.Lock()
	s.writes = append(s.writes, len(data))
	s.mutex.Unlock()
	<-s.gate
	return len(data), nil
}

func (s *slow) total() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	total := 0
	for _, n := range s.writes {
		total += n
	}
	return total
}

func TestFramesThatAreReadyTogetherAreOneWrite(t *testing.T) {
	s := &slow{gate: make(chan struct{})}
	w := newWriter(s)
	var all sync.WaitGroup
	for range 100 {
		all.Add(1)
		go func() {
			defer all.Done()
			w.send(func(to []byte) []byte { return append(to, "0123456789"...) })
		}()
	}
	for sent := 0; sent < 1000; time.Sleep(time.Millisecond) {
		w.mutex.Lock()
		sent = s.total() + len(w.waiting)
		w.mutex.Unlock()
	}
	close(s.gate)
	all.Wait()
	w.drain()
	if s.total() != 1000 || len(s.writes) > 2 {
		t.Errorf("found %d bytes in %d writes", s.total(), len(s.writes))
	}
}

func TestOpen(t *testing.T) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fds[1])
	for _, c := range []struct{ versions, fd, text string }{
		{"", fmt.Sprint(fds[0]), "expected version 1"},
		{"2 3", fmt.Sprint(fds[0]), `found "2 3"`},
		{"1", "x", "expected the number of a socket"},
		{"1", "-1", "expected the number of a socket"},
		{"1", "999", "expected a stream socket"},
		{"2 1", fmt.Sprint(fds[0]), ""},
	} {
		t.Setenv(EnvVersions, c.versions)
		t.Setenv(EnvFD, c.fd)
		if !Started() {
			t.Error("expected to be started")
		}
		socket, err := Open()
		if c.text == "" && err != nil || c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%+v: found %v", c, err)
		}
		if _, ok := os.LookupEnv(EnvFD); ok || Started() {
			t.Error("expected that the variables are gone")
		}
		if err == nil {
			socket.Close()
		}
	}
}

func BenchmarkEcho(b *testing.B) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		b.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "w"), os.NewFile(uintptr(fds[1]), "p")
	defer ours.Close()
	defer theirs.Close()
	go Serve(context.Background(), theirs, Ready{Types: []string{}}, func(context.Context, *Run) Verdict {
		return Verdict{Kind: Done}
	})
	lines := bufio.NewReaderSize(ours, 1<<16)
	lines.ReadString('\n')
	const parallel = 100
	var frames []byte
	payload := strings.Repeat("x", 100)
	b.ReportAllocs()
	for done := 0; done < b.N; done += parallel {
		frames = frames[:0]
		for i := range parallel {
			frames = fmt.Appendf(frames, `{"t":"job","run":%d,"n":100,"id":"P6w14_-MIybcKK","type":"email.send","queue":"default",`+
				`"attempt":1,"max_attempts":5,"fence":"1790000000000000","timeout":30000,"created":1790000000000}`+"\n%s", i, payload)
		}
		ours.Write(frames)
		for range parallel {
			lines.ReadSlice('\n')
		}
	}
}
