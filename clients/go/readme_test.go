package holdfast

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast-queue/holdfast/internal/testredis"
)

// A block is one of a document: its language and its text.
type block struct{ language, text string }

var fences = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// part returns what a document has below a heading, and its blocks.
func part(t *testing.T, path, heading string) (string, []block) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut("\n"+string(text), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", path, heading)
	}
	if level, _, _ := strings.Cut(heading, " "); level != "#" {
		rest, _, _ = strings.Cut(rest, "\n"+level+" ")
	}
	var blocks []block
	for _, match := range fences.FindAllStringSubmatch(rest, -1) {
		blocks = append(blocks, block{match[1], match[2]})
	}
	return rest, blocks
}

// What a reader types, as README prints it.
func TestTheReadme(t *testing.T) {
	holdfast, server := command(t), testredis.Start(t)
	_, blocks := part(t, "README.md", "## Use it from Node or Go")
	if len(blocks) != 3 || blocks[1].language != "go" || blocks[2].language != "shell" {
		t.Fatalf("found %v", blocks)
	}
	// A test asks no network, and `go mod tidy` wants what the tests of its modules import.
	forGo := strings.NewReplacer("node worker.mjs", "./hello", "build-package/go", "clients/go",
		"go mod tidy", "go mod tidy -e").Replace(
		regexp.MustCompile("(?m)^(\\(cd|npm) .*$").ReplaceAllString(blocks[2].text, ""))
	dir := t.TempDir()
	write(t, filepath.Join(dir, "main.go"), blocks[1].text)
	if out := reads(t, dir, forGo, holdfast, server); out != "ada\n\"hello, Ada\"\n" {
		t.Errorf("found %q", out)
	}
}

// The service examples/thumbnails, as its page shows it.
func TestTheThumbnails(t *testing.T) {
	holdfast, server, dir := command(t), testredis.Start(t), t.TempDir()
	_, blocks := part(t, "examples/thumbnails/README.md", "## Start it")
	if len(blocks) != 4 {
		t.Fatalf("found %v", blocks)
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", "thumbnails"))); err != nil {
		t.Fatal(err)
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 640, 480))); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "picture.jpg"), picture.String())
	module := `go mod edit -replace holdfast-queue/holdfast="$HOLDFAST/clients/go"` + "\n"
	out := reads(t, dir, module+blocks[0].text+blocks[1].text+blocks[3].text, holdfast, server, "ADDR="+testredis.FreeAddr(t))
	names := regexp.MustCompile("[0-9a-f]{64}")
	if found, shown := names.ReplaceAllString(out, ""), names.ReplaceAllString(blocks[2].text, ""); found != shown {
		t.Errorf("found %q", found)
	}
	file, err := os.Open(filepath.Join(dir, "small.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if small, err := png.DecodeConfig(file); err != nil || small.Width != 160 || small.Height != 120 {
		t.Errorf("found %+v, %v", small, err)
	}
}

// write makes a file that may be executed.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// reads runs what a reader types in a folder, with the command in PATH, and
// returns what it prints.
func reads(t *testing.T, dir, session, holdfast string, server *testredis.Server, env ...string) string {
	t.Helper()
	write(t, filepath.Join(dir, "bin", "holdfast"), "#!/bin/sh\nexec "+holdfast+` "$@"`+"\n")
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-euc", session)
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) } // with what it started
	shell.Dir = dir
	shell.Env = append(append(os.Environ(), "HOLDFAST="+root, "REDIS_URL="+server.URL, "GOFLAGS=-mod=mod",
		"PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH")), env...)
	var log strings.Builder
	shell.Stderr = &log
	out, err := shell.Output()
	if err != nil {
		worker, _ := os.ReadFile(filepath.Join(dir, "worker.log"))
		t.Fatalf("found %q, %v\n%s\n%s", out, err, log.String(), worker)
	}
	return string(out)
}

// The program around the blocks and the tables of docs/go.md.
const around = `package docs

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"os"
	"testing"
	"time"

	"holdfast-queue/holdfast"
	"holdfast-queue/holdfast/holdfasttest"
)

type Resize struct { Image int %[1]sjson:"image"%[1]s }
func (Resize) Kind() string { return "resize" }
type Report struct {}
func (Report) Kind() string { return "report" }
type Sweep struct { What string %[1]sjson:"what"%[1]s }
func (Sweep) Kind() string { return "sweep" }
type Size struct { Width int }

var (
	_ = errors.Is
	_ = log.Print
	_ = slog.Info
	_ = os.Stderr
	_ = time.Now
	_ testing.TB
	_ = holdfasttest.New
	ctx context.Context
	hf *holdfast.Client
	mux *holdfast.Mux
	ref *holdfast.JobRef
	job *holdfast.Job[SendEmail]
	err error
	payload []byte
	middleware func(holdfast.Handler) holdfast.Handler
	hook func(context.Context, *holdfast.Call) error
	wait func(int, error) time.Duration
	sendHandler func(context.Context, *holdfast.Job[SendEmail]) error
	resizeHandler func(context.Context, *holdfast.Job[Resize]) (Size, error)
)

func resize(context.Context, int) (Size, error) { return Size{}, nil }
func tenantOf(context.Context) string { return "" }
func withTenant(ctx context.Context, _ string) context.Context { return ctx }
func signUp(context.Context, *holdfast.Client, string) {}
func handlers() *holdfast.Mux { return mux }
func use(...any) {}
`

var declared = regexp.MustCompile(`(?m)^(func|type) `)

// The blocks of docs/go.md, and our side of its tables, are good code.
func TestTheManual(t *testing.T) {
	text, blocks := part(t, "docs/go.md", "# Go")
	var program strings.Builder
	fmt.Fprintf(&program, around, "`")
	code := 0
	for _, block := range blocks {
		if block.language != "go" {
			continue
		}
		code++
		body := block.text
		if strings.HasPrefix(body, "package main\n") { // the first block: its imports are those above
			_, body, _ = strings.Cut(body, "\n)\n")
		}
		if declared.MatchString(body) {
			program.WriteString(body)
			continue
		}
		names := regexp.MustCompile(`(?m)^(\w+), err :?=`).FindAllStringSubmatch(body, -1)
		fmt.Fprintf(&program, "func block%d() {\n%s", code, body)
		for _, name := range names {
			fmt.Fprintf(&program, "\nuse(%s, err)", name[1])
		}
		program.WriteString("\n}\n")
	}
	spans := 0
	program.WriteString("func tables() {\n")
	for _, line := range strings.Split(text, "\n") {
		cells := strings.Split(line, "|")
		place := 1 // of the tables with two columns; a cell is before the first bar
		if len(cells) == 5 {
			place = 2
		}
		if !strings.HasPrefix(line, "| ") || len(cells) > 5 {
			continue
		}
		for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[place], -1) {
			switch span := match[1]; {
			case regexp.MustCompile(`^(mux\.|hf\.On|holdfast\.Handle|job\.Log)`).MatchString(span):
				fmt.Fprintln(&program, span)
			case regexp.MustCompile(`^(holdfast\.\w+[[({]|hf\.|ref\.|job\.|holdfasttest\.|[A-Z]\w+\{)`).MatchString(span):
				fmt.Fprintf(&program, "use(%s)\n", span)
			default:
				continue
			}
			spans++
		}
	}
	program.WriteString("}\n")
	if code < 9 || spans < 60 {
		t.Errorf("found %d blocks and %d spans of code", code, spans)
	}
	dir := t.TempDir()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	file, overlay := filepath.Join(dir, "docs_test.go"), filepath.Join(dir, "overlay.json")
	replaces, _ := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(here, "internal", "docs", "docs.go"): file},
	})
	for path, text := range map[string][]byte{file: []byte(program.String()), overlay: replaces} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-overlay", overlay, "./internal/docs").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, program.String())
	}
}
