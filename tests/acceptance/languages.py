"""Programs of handlers in Node and Go, beside those in Python of pools.py: their handlers write down the same lines.
They use the clients of this tree, and what ./dev test fetched for them."""
import os
import shutil
import subprocess
import time

from pools import BEAT_MS
from support import SOURCE, require

NODE = os.path.join(SOURCE, "clients", "node")
GO = os.path.join(SOURCE, "clients", "go")
NODE_RECORDER = f"""
import {{ openSync, writeSync }} from "node:fs";
import {{ setTimeout as sleep }} from "node:timers/promises";
import {{ Holdfast }} from "{NODE}/dist/index.mjs";

const LOG = openSync(process.env.RUNS, "a", 0o600);
const SLEPT_NS = BigInt(process.env.SLEPT_NS);
const hf = new Holdfast();

function note(kind, job) {{
  const now = process.hrtime.bigint() + SLEPT_NS;
  writeSync(LOG, `${{kind}} ${{process.pid}} ${{job.id}} ${{job.attempt}} ${{job.fence}} ${{now}}\\n`);
}}

async function wait(ms, job) {{
  note("start", job);
  const until = performance.now() + ms;
  for (let left = ms; left > 0; left = until - performance.now()) {{
    await sleep(Math.min(left, {BEAT_MS}));
    note("beat", job);
  }}
  note("end", job);
}}

async function crash(_ms, job) {{
  note("start", job);
  await sleep(50);
  note("beat", job);
  setTimeout(() => {{
    throw new Error("nothing catches this");
  }});
  await sleep(60000);
}}
"""
GO_RECORDER = f"""package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"holdfast-queue/holdfast"
)

const beat = {BEAT_MS} * time.Millisecond

var notes, _ = os.OpenFile(os.Getenv("RUNS"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)

func note(kind string, run *holdfast.JobRun) {{
	var now syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 7, uintptr(unsafe.Pointer(&now)), 0) // CLOCK_BOOTTIME
	fmt.Fprintf(notes, "%s %d %s %d %d %d\\n", kind, os.Getpid(), run.ID, run.Attempt, run.Fence, now.Nano())
}}

func wait(ctx context.Context, run *holdfast.JobRun) ([]byte, error) {{
	ms, err := strconv.Atoi(string(run.Payload))
	if err != nil {{
		return nil, err
	}}
	note("start", run)
	until := time.Now().Add(time.Duration(ms) * time.Millisecond)
	for left := time.Until(until); left > 0; left = time.Until(until) {{
		time.Sleep(min(left, beat))
		note("beat", run)
	}}
	note("end", run)
	return nil, nil
}}

func crash(ctx context.Context, run *holdfast.JobRun) ([]byte, error) {{
	note("start", run)
	time.Sleep(50 * time.Millisecond)
	note("beat", run)
	go panic("nothing recovers from this")
	select {{}}
}}

func spin(ctx context.Context, run *holdfast.JobRun) ([]byte, error) {{
	note("start", run)
	for i := 0; ; i++ {{
		spun = i
	}}
}}

var spun int

func main() {{
	mux := holdfast.NewMux()
"""
GO_MAIN = """
	log.Fatal(holdfast.Run(context.Background(), mux))
}
"""


def missing():
    """Why the programs cannot be made, or None. It builds the client for Node."""
    if not os.path.exists(os.path.join(NODE, "node_modules", "lock")):
        return "skipped: there is no clients/node/node_modules. ./dev test makes it"
    if not go_command():
        return "skipped: there is no command go"
    done = subprocess.run(["node_modules/.bin/tsc"], cwd=NODE, capture_output=True, text=True)
    require(done.returncode == 0, f"the sources of clients/node do not compile: {done.stdout}")
    slept = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    os.environ["SLEPT_NS"] = str(max(0, slept))  # Node reads the monotonic clock only
    return None


def go_command():
    return shutil.which("go", path=os.environ["PATH"] + ":/usr/local/go/bin")


def node_pool(fixture, name, text, **options):
    """text: jobs, which come behind NODE_RECORDER."""
    path = fixture.write(f"{name}.mjs", NODE_RECORDER + text + "\nawait hf.run();\n")
    return {"pool": ["node", path], "env": "all", "grace": "1s", **options}


def go_pool(fixture, name, text, **options):
    """text: handlers of `mux`, between GO_RECORDER and GO_MAIN."""
    source, path = fixture.write(f"{name}.go", GO_RECORDER + text + GO_MAIN), fixture.path(name)
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    done = subprocess.run([go_command(), "build", "-o", path, source], cwd=GO, env=environment, capture_output=True,
                          text=True)
    require(done.returncode == 0, f"go build: {done.stderr}")
    return {"pool": [path], "env": "all", "grace": "1s", **options}
