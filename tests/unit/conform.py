#!/usr/bin/env python3
"""`holdfast conform` with programs that are right, and with programs that are wrong in one place: each of these is
examples/pipe.py with one text replaced, and fails with the right sentence. The tests of the clients play all cases."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD, HOLDFAST = os.environ["HF_SOURCE"], os.environ["HF_BUILD"], os.environ["HOLDFAST"]
# The programs need no module of the site, whose start would be a good part of theirs.
PYTHON, RUBY = [sys.executable, "-S"], ["ruby", "--disable-gems"]
EXAMPLE = os.path.join(SOURCE, "examples/pipe.py")

# what is wrong, the text of the example, what stands there, the case, a part of the sentence
BROKEN = [
    ("answers twice", "    send(answer, body)\n", "    send(answer, body); send(answer, body)\n",
     "a run has one verdict", "expected one verdict of run 1, found a second one: 'done'"),
    ("dies by TERM", "(signal.SIGTERM, signal.SIGINT)", "(signal.SIGINT,)",
     "TERM while the program waits", "expected 'done' of run 1, found the end of the program (signal 15"),
    ("dies by INT", "(signal.SIGTERM, signal.SIGINT)", "(signal.SIGTERM,)",
     "INT while the program waits", "expected 'done' of run 1, found the end of the program (signal 2"),
    ("leaves the checkpoint in the socket", "frames.read(frame.get(\"c\", 0))", "None",
     "a checkpoint", "behind the payload: expected 'done' of run 2, found the end of the program (exit status 1)"),
    ("does not skip the bytes of an unknown frame",
     "    payload, checkpoint = ", "    if frame['t'] == 'future': continue\n    payload, checkpoint = ",
     "an unknown kind of frame", "with n bytes: expected 'done' of run 2, found the end of the program (exit status 0)"),
    ("does not answer ping", "send({\"t\": \"pong\"})", "pass",
     "ping", "while the program waits: expected 'pong' within 10s, found nothing"),
    ("sends results that are too long", "> 65536", "> 99999",
     "results",
     "of one byte more than 64 KiB: 'done' of run 2: result: expected at most 65536 bytes, found 65537; "
     "the program has to answer 'dead' itself"),
    ("counts characters, not bytes", "| {\"n\": len(body)}", "| {\"n\": len(body.decode(errors='ignore'))}",
     "payloads",
     "all 256 values of a byte: 'done' of run 3: expected a body of 256 bytes, found 128 that differ at byte 128"),
    ("does not know versions", "if \"1\" not in os.environ.pop(\"HOLDFAST_PIPE\", \"\").split():", "if False:",
     "no version that the program knows", "expected the end of the program, found `ready`"),
    ("leaves the socket to others", "sock.set_inheritable(False)", "sock.set_inheritable(True)",
     "programs that the program starts do not inherit the socket",
     "expected that the descriptor 3 is closed on exec (FD_CLOEXEC)"),
    ("prints after its verdict", "    sys.stdout.flush()", "    pass",
     "a handler prints", "expected what the handler printed on standard output before its verdict, found 0 bytes"),
    ("does not read a large payload", "payload, checkpoint = ",
     "payload, checkpoint = frame.get('n', 0) > 99999 and time.sleep(99) or ",
     "a payload of 63 MiB", "expected 'dead' of run 1 within 10s, found that the program does not read what it is sent"),
    ("sends a number with a fraction", "\"run\": frame[\"run\"]}", "\"run\": frame[\"run\"] + 0.5}",
     "a run has one verdict", "protocol error: 'done' at byte "),
    ("does not stop", "if frame[\"t\"] == \"stop\": break", "pass",
     None, "expected exit status 0 within 10s, found that the program still runs"),
    ("says nothing before its first job", "send({\"t\": \"ready\"", "0 and send({\"t\": \"ready\"",
     None, "expected `ready` within 10s, found nothing"),
    ("names a type that is no name", "{\"type\": name} for", "{\"type\": name + \"!\"} for",
     None, "the frame `ready` is refused: types[0]: expected 1 to 128 of A-Z a-z 0-9 . _ : - as `type`"),
    ("ends at import", "import json", "import jsn", None,
     "expected `ready`, found the end of the program (exit status 1)"),
]


def conform(*words, timeout="2m"):
    done = subprocess.run([HOLDFAST, "conform", "--json", "--timeout", timeout, *words],
                          capture_output=True, text=True,
                          env={**os.environ, "PYTHONUNBUFFERED": ""})
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def right(words, skipped):
    code, cases = conform("--", *words)
    wrong = [case for case in cases if case["result"] == "failed"]
    n = sum(case["result"] == "skipped" for case in cases)
    assert code == 0 and not wrong, f"{words}: {wrong}"
    assert n == skipped, f"{words}: {n} cases were skipped"
    print(f"{words[-1]}: {len(cases) - n} cases passed, {n} were skipped")


def broken(folder, name, old, new, case, sentence):
    text = read(EXAMPLE)
    assert text.count(old) == 1, f"{old} is not once in the example"
    path = os.path.join(folder, f"{name.replace(' ', '-')}.py")
    with open(path, "w") as file:
        file.write(text.replace(old, new))
    code, cases = conform(*(["--case", case] if case else []), "--", *PYTHON, path,
                          timeout="10s" if "within" in sentence else "2m")
    found = [one["why"] for one in cases if one["result"] == "failed"]
    assert code == 1 and len(found) == 1 and sentence in found[0], f"{name}: {code} {cases}"
    print(f"{name}: {found[0]}")


def in_ruby(folder):
    """The program of docs/ruby.md."""
    if shutil.which(RUBY[0]) is None:
        print("worker.rb: there is no ruby")
        return
    path = os.path.join(folder, "worker.rb")
    with open(path, "w") as file:
        file.write(re.findall(r"```ruby\n(# A program .*?)```", read("docs/ruby.md"), re.DOTALL)[0])
    right([*RUBY, path], 9)


def read(path):
    with open(os.path.join(SOURCE, path)) as file:
        return file.read()


def main():
    assert read("examples/pipe.py").count("\n") <= 40 and read("examples/pipe.c").count("\n") <= 60
    assert f"```python\n{read('examples/pipe.py')}```\n" in read("docs/pipe.md")
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor() as pool:
        tests = [pool.submit(right, [*PYTHON, EXAMPLE], 9),
                 pool.submit(right, [os.path.join(BUILD, "examples/example_pipe")], 14),
                 pool.submit(in_ruby, folder)]
        tests += [pool.submit(broken, folder, *one) for one in BROKEN]
        for test in tests:
            test.result()
    code, cases = conform("--case", "a failure is retried", "--case", "ping", "--",
                          os.path.join(BUILD, "examples/example_pipe"))
    assert code == 0 and [case["result"] for case in cases] == ["skipped", "passed"], cases


main()
