#!/usr/bin/env python3
"""The runner of the mutants (tests/mutate) with a small tree: what it finds, what it refuses with one message, and
what it says of a test that passes, fails or hangs."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.environ["HF_SOURCE"]
# A test. On a busy machine its second run takes too long, and the third one takes longer than that.
TEST = """#!/bin/sh
rule() {
    return 0
}
date +%s >>"$HF_RUNS"
second=$(sed -n 2p "$HF_RUNS")
case $HF_BUSY$(grep -c '' "$HF_RUNS") in
busy2) exec sleep 600 ;;
busy3) sleep $(($(date +%s) - second + 2)) ;;
esac
rule || exit 1
"""
FILES = {
    "q/a.c": "static int limit = 2;\n\nint one(int n);\n\nint one(int n)\n{\n    n++;\n    return n;\n}\n\n"
             "static int two(int n,\n               int m)\n{\n    if (n) {\n        n++;\n        n++;\n    }\n"
             "    return m;\n}\n",
    "q/a.lua": "local call = redis.call\n\nlocal function one(n)\n  for i = 1, n do\n    n = n + 1\n  end\n  return n\nend\n\n"
               "local two = function(n)\n  return n\nend\n\nif call('TIME') then\n  return n\nend\nreturn n + 1\n",
    "q/a.py": "class A:\n    def close(self):\n        return 1\n\n    def open(self):\n        return 3\n\n\nclass B:\n"
              "    def close(self):\n        return 1\n\n\ndef open(path):\n    if path:\n        return 4\n\n    return 5\n\n\n"
              "LIMIT = 5\n",
    "q/a.js": "export const short = (n) => n + 1;\n\nexport class A {\n  async one(n) {\n    if (n) {\n      return n + 1;\n"
              "    }\n  }\n\n  two(n) {\n    return n + 1;\n  }\n}\n\nexport function three(n) {\n  return n + 1;\n}\n",
    "q/a.go": "package a\n\nfunc (a *A) One() int { return 1 }\n\nfunc Two[T any](t T) int {\n\treturn 1\n}\n",
    "q/a.sh": "say() { echo 1; }\nrun() {\n    echo 1\n}\necho 1\n",
    "q/script": "#!/usr/bin/env bash\nrun() {\n    echo 1\n}\necho 1\n",
    "q/rules": "allow 1\ndeny 1\n",
    "q/test.sh": TEST,
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.25)\nproject(small NONE)\nset(b \"${CMAKE_BINARY_DIR}/tests\")\n"
                      "file(MAKE_DIRECTORY \"${b}\")\nadd_custom_target(test_unit_a COMMAND \"${CMAKE_COMMAND}\" -E copy\n"
                      "  \"${CMAKE_SOURCE_DIR}/q/test.sh\" \"${b}/test_unit_a\" COMMAND chmod +x \"${b}/test_unit_a\")\n",
    "tests/CMakeLists.txt": "add_test(NAME unit.a COMMAND a)\n",
    "tests/integration/test_b.c": "int main(void);\n",
}
GOOD = [
    ("the body of a function in C, not its declaration", "a.c", "one", "- n++;"),
    ("a function whose head has two lines", "a.c", "two", "- return m;"),
    ("outside of functions", "a.c", "", "- limit = 2"),
    ("white space does not count", "a.c", "two", "- n++; n++;\n+ n--;\n+ n--;"),
    ("a function in Lua", "a.lua", "one", "- return n"),
    ("a function in Lua that is a value", "a.lua", "two", "- return n"),
    ("a statement of a script", "a.lua", "", "- return n\n- end"),
    ("a method in Python", "a.py", "A.close", "- return 1"),
    ("a method of the other class", "a.py", "B.close", "- return 1"),
    ("a function in Python after an empty line", "a.py", "B.close", "- return 1"),
    ("a constant in Python", "a.py", "", "- 5"),
    ("a function of one line in JavaScript", "a.js", "short", "- n + 1"),
    ("a method in JavaScript", "a.js", "one", "- n + 1"),
    ("a method in JavaScript, by its class", "a.js", "A.two", "- n + 1"),
    ("a function in JavaScript", "a.js", "three", "- n + 1"),
    ("a method in Go of one line", "a.go", "One", "- 1"),
    ("a function in Go with types", "a.go", "Two", "- return 1"),
    ("a function of one line in a shell", "a.sh", "say", "- echo 1"),
    ("a function in a shell", "a.sh", "run", "- echo 1"),
    ("outside of the functions of a shell", "a.sh", "", "- echo 1"),
    ("a script without an ending", "script", "run", "- echo 1"),
    ("a file of another kind", "rules", "", "- deny 1"),
]
BAD = [
    ("a line twice", "a.c", "two", "- n++;", "q/a.c: two: there 2 times: n++;"),
    ("a line of another function", "a.c", "one", "- return m;", "q/a.c: one: not there: return m;"),
    ("a line of two functions, without a function", "a.c", "", "- n++;", "q/a.c: outside of functions: not there: n++;"),
    ("no such function", "a.c", "three", "- n++;", "q/a.c: three: no function three"),
    ("two functions of one name", "a.py", "close", "- return 1", "q/a.py: close: 2 functions close"),
    ("no such file", "b.c", "one", "- n++;", "q/b.c: No such file or directory"),
    ("a function in a file of another kind", "rules", "one", "- deny 1",
     "q/rules: one: how functions begin in such a file is not known"),
    ("a part of a word", "a.c", "one", "- eturn n;", "q/a.c: one: not there: eturn n;"),
    ("no text", "a.c", "one", "+ n++;", "line 3 does not belong there: + n++;"),
    ("no change", "a.c", "one", "", "it has no test or no change"),
]
FILE = "file: q/a.c   function: one   test: unit.a\n- n++;\n"
WHOLE = [
    ("a name twice", f"== m: a rule\n{FILE}\n== m: a rule\n{FILE}+ n--;\n", "two mutants are named m"),
    ("the same change twice", f"== m: a rule\n{FILE}\n== n: a rule\n{FILE}", "it does the same as m"),
    ("no such test", f"== m: a rule\n{FILE.replace('unit.a', 'unit.b')}", "there is no test unit.b"),
    ("no test", f"== m: a rule\n{FILE.replace('   test: unit.a', '')}",
     "line 2 does not belong there: file: q/a.c   function: one"),
    ("a second test", f"== m: a rule\n{FILE}{FILE}", "line 4 does not belong there: file: q/a.c   function: one   test: unit.a"),
    ("another folder", f"== m: a rule\n{FILE.replace('q/a.c', 'r/a.c')}", "m changes r/a.c, and belongs in another file"),
    ("no rule", f"== m\n{FILE}", "line 1 does not belong there: == m"),
]


def run(folder, mutants, *words):
    """The last line of what the runner says of the mutants, and its status."""
    with open(os.path.join(folder, "tests/mutants/q"), "w", encoding="utf-8") as file:
        file.write(mutants)
    done = subprocess.run([os.path.join(folder, "tests/mutate"), *words], stdin=subprocess.DEVNULL, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.splitlines(), done.returncode


# What a line in place of `return 0` leads to.
TRIED = [
    ("a test that fails", "return 1", "", "killed"),
    ("a test that says that it has failed", 'echo "[  FAILED  ] a"; exec sleep 600', "", "killed"),
    ("a test that passes", "true", "", "SURVIVED"),
    ("a test that hangs", "exec sleep 600", "", "hung"),
    ("a machine that was busy", "true", "busy", "SURVIVED"),
    ("a test that hangs on a machine that was busy", "exec sleep 600", "busy", "hung"),
]


def section(file, function, lines, test="unit.a"):
    function = f"   function: {function}" if function else ""
    return f"== m: a rule\nfile: q/{file}{function}   test: {test}\n{lines}\n"


def choices(folder):
    """What --random, --changed and a name choose."""
    many = "\n".join(f"== m{n}: rule {n}\nfile: q/a.{'c' if n % 2 else 'lua'}   function: one   test: redis.b\n"
                     f"- return n\n+ return {n}\n" for n in range(10))
    assert run(folder, many, "--list", "m[12]") == (["m1: rule 1", "m2: rule 2"], 0)
    assert run(folder, many, "--list", "x") == (["there is no mutant x"], 64)
    first = run(folder, many, "--list", "--random", "3", "--seed", "7")
    assert first == run(folder, many, "--list", "--random", "3", "--seed", "7"), first
    assert len(first[0]) == 4 and first[0][0].startswith("seed 7: "), first
    assert len(run(folder, many, "--list", "--random", "99")[0]) == 11
    if not shutil.which("git"):
        return
    git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "a"]):
        subprocess.run([*git, *words], check=True, stdin=subprocess.DEVNULL)
    assert run(folder, many, "--list", "--changed") == ([], 0)
    fresh = os.path.join(folder, "tests/integration/test_c.c")
    with open(fresh, "w", encoding="utf-8") as file:
        file.write("int main(void);\n")
    assert len(run(folder, many.replace("redis.b", "redis.c"), "--list", "--changed")[0]) == 10
    os.remove(fresh)
    with open(os.path.join(folder, "q/a.lua"), "a", encoding="utf-8") as file:
        file.write("-- the end\n")
    assert run(folder, many, "--list", "--changed")[0] == [f"m{n}: rule {n}" for n in (0, 2, 4, 6, 8)]
    with open(os.path.join(folder, "tests/integration/test_b.c"), "a", encoding="utf-8") as file:
        file.write("int a;\n")
    assert len(run(folder, many, "--list", "--changed", "HEAD")[0]) == 10


def tried(folder):
    """What the runner says of mutants that it tries, when a test may run for a second more than without them."""
    loader = importlib.machinery.SourceFileLoader("mutate", os.path.join(folder, "tests/mutate"))
    mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
    loader.exec_module(mutate)
    mutate.EXTRA_S, bad = 1, 0
    for name, line, busy, expected in TRIED:
        runs, said = os.path.join(folder, "runs"), io.StringIO()
        open(runs, "wb").close()
        os.environ.update(HF_RUNS=runs, HF_BUSY=busy)
        with open(os.path.join(folder, "tests/mutants/q"), "w", encoding="utf-8") as file:
            file.write(section("test.sh", "rule", f"- return 0\n+ {line}"))
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            good = mutate.try_them(mutate.fitting(mutate.all_mutants().values()), 1)
        if said.getvalue().split()[1:2] != [expected] or good != (expected != "SURVIVED"):
            print(f"[  FAILED  ] {name}: {good} {said.getvalue()}")
            bad += 1
    return bad


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        os.mkdir(os.path.join(folder, "tests/mutants"))
        shutil.copy(os.path.join(SOURCE, "tests/mutate"), os.path.join(folder, "tests/mutate"))
        cases = [(name, section(*words), None) for name, *words in GOOD]
        cases += [(name, section(*words), said) for name, *words, said in BAD] + WHOLE
        for name, mutants, said in cases:
            lines, status = run(folder, mutants, "--check")
            told = [line for line in lines if not line.startswith("mutant ")]
            if (status == 0) != (said is None) or len(told) != (said is not None) or (said and not told[0].endswith(said)):
                print(f"[  FAILED  ] {name}: {status} {lines}")
                bad += 1
        choices(folder)
        bad += tried(folder)
    print(f"{len(cases) + len(TRIED)} cases, {bad} failed")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
