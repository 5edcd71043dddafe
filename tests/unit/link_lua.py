#!/usr/bin/env python3
"""The linker of the scripts (tools/link_lua.c) with small modules: what it puts where, and what it refuses."""
import os
import subprocess
import sys
import tempfile
import time

SOURCE, LINKER = os.environ["HF_SOURCE"], os.path.join(os.environ["HF_BUILD"], "tools/link_lua")
A = "local call = redis.call\n"
TWO = "local function two()\n  return 2\nend\n"
AGAIN = "local function again(n)\n  return n > 0 and again(n - 1)\nend\n"
INLINE = ("local MAX = 'a, b' -- c\n\n--- @inline\nlocal function has(text, what)\n"
          "  return text and string.find(text, what, 1)\nend\n")
STATE = "local seen\n\nlocal function see()\n  seen = true\nend\n"


def linked(modules, script, steps=None, shared=None):
    """The script as it was linked, without what its header says; or the errors."""
    with tempfile.TemporaryDirectory() as folder:
        files = {f"q/lib/{name}.lua": text for name, text in modules.items()}
        files |= {f"q/steps/{name}.lua": text for name, text in (steps or {}).items()}
        files |= {f"shared/{name}.lua": text for name, text in (shared or {}).items()}
        files |= {"q/s.lua": script, "out/.keep": "", "shared/.keep": ""}
        for name, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([LINKER, "q", "shared", "out", "p_"], cwd=folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        if done.returncode:
            assert done.returncode == 65, done
            assert not os.path.exists(os.path.join(folder, "out/p_s.lua")) or "no script uses" in done.stderr
            return done.stderr
        assert not done.stderr, done.stderr
        with open(os.path.join(folder, "out/p_s.lua"), encoding="utf-8") as file:
            return file.read()


GOOD = [
    ("a declaration stands before the statement that uses it",
     {"a": TWO}, "-- Head.\n--  more\nlocal x = 1\nreturn x + two()\n",
     "-- Head.\n--  more\nlocal x = 1\n" + TWO + "return x + two()\n"),
    ("a comment stays with its statement, and the head at the top",
     {"a": A}, "-- Head.\ncall('PING')\n", "-- Head.\n" + A + "call('PING')\n"),
    ("comments of a module are left out",
     {"a": "-- a.lua\n\n-- Two.\nlocal function two() -- it is\n  -- indeed\n  return 2\nend\n"}, "return two()\n",
     "local function two() -- it is\n  return 2\nend\nreturn two()\n"),
    ("what a declaration needs stands before it, whatever the order of the modules",
     {"a": "local function f()\n  return A .. B\nend\n", "b": "local A = 'a'\nlocal B = A\n"}, "return f()\n",
     "local A = 'a'\nlocal B = A\nlocal function f()\n  return A .. B\nend\nreturn f()\n"),
    ("a constant stands in place of its name",
     {"a": "local MAX, LOW = 8, -2 -- of them\nlocal BOTH = MAX + 1\n"}, "return { MAX, ARGV.MAX, 'MAX', BOTH - LOW } -- MAX\n",
     "local BOTH = 8 + 1\nreturn { 8, ARGV.MAX, 'MAX', BOTH - (-2) } -- MAX\n"),
    ("a function that is inlined stands in place of its calls",
     {"a": INLINE}, "local uses = KEYS[1]\nif not has(uses, 'l') then\n  return has(uses.x, MAX), 'has(uses, MAX)' -- has(x)\nend\n",
     "local uses = KEYS[1]\nif not (uses and string.find(uses, 'l', 1)) then\n"
     "  return (uses.x and string.find(uses.x, 'a, b', 1)), 'has(uses, MAX)' -- has(x)\nend\n"),
    ("each branch that uses it has its own",
     {"a": TWO}, "if KEYS[1] then\n  return two()\nelse\n  error(two())\nend\n",
     "if KEYS[1] then\n  local function two()\n    return 2\n  end\n  return two()\nelse\n"
     "  local function two()\n    return 2\n  end\n  error(two())\nend\n"),
    ("a condition is no branch",
     {"a": TWO}, "if KEYS[1] then\n  return 1\nelseif two() then\n  return two()\nend\n",
     TWO + "if KEYS[1] then\n  return 1\nelseif two() then\n  return two()\nend\n"),
    ("never in a loop or a function",
     {"a": TWO}, "local function f()\n  for i = 1, 2 do\n    if i then\n      return two()\n    end\n  end\nend\nreturn f()\n",
     TWO + "local function f()\n  for i = 1, 2 do\n    if i then\n      return two()\n    end\n  end\nend\nreturn f()\n"),
    ("a loop in a branch stays in the branch",
     {"a": TWO}, "if KEYS[1] then\n  for _ = 1, 2 do\n    two()\n  end\nend\n",
     "if KEYS[1] then\n  local function two()\n    return 2\n  end\n  for _ = 1, 2 do\n    two()\n  end\nend\n"),
    ("a branch on one line is no place",
     {"a": TWO}, "if KEYS[1] then two() end\n", TWO + "if KEYS[1] then two() end\n"),
    ("a variable is there once, also for two branches",
     {"a": STATE}, "if KEYS[1] then\n  see()\nend\nif KEYS[2] then\n  return seen\nend\n",
     "local seen\nif KEYS[1] then\n  local function see()\n    seen = true\n  end\n  see()\nend\n"
     "if KEYS[2] then\n  return seen\nend\n"),
    ("so is a constant that the script changes",
     {"a": "local P, Q = 1, 2\n\nlocal function use()\n  P, Q = 3, 4\nend\n"},
     "if KEYS[1] then\n  use()\nend\nif KEYS[2] then\n  return P\nend\n",
     "local P, Q = 1, 2\nif KEYS[1] then\n  local function use()\n    P, Q = 3, 4\n  end\n  use()\nend\n"
     "if KEYS[2] then\n  return P\nend\n"),
    ("a function may call itself", {"a": AGAIN}, "return again(2)\n", AGAIN + "return again(2)\n"),
    ("base is first, in its order, as far as it is used",
     {"base": A + "local time = call('TIME')\nlocal stamp = time[1]\n\nlocal function two()\n  return stamp\nend\n",
      "b": "local function f()\n  return two()\nend\n"},
     "-- Head.\nlocal x = 1\nif x then\n  return f()\nend\n",
     "-- Head.\n" + A + "local time = call('TIME')\nlocal stamp = time[1]\nlocal function two()\n  return stamp\nend\n"
     "local x = 1\nif x then\n  local function f()\n    return two()\n  end\n  return f()\nend\n"),
    ("names in comments, texts, fields and keys are none",
     {"a": A}, "local t = { two = 1, 'two', [\"two\"] = '\\'two' } -- two\nt.two = t:two({ two = call })\nreturn t\n",
     "local t = { two = 1, 'two', [\"two\"] = '\\'two' } -- two\n" + A + "t.two = t:two({ two = call })\nreturn t\n"),
    ("a declaration that shared modules have", {}, "return two()\n", TWO + "return two()\n"),
    ("all of Lua", {},
     "local call, t, n = redis.call, {}, 0\nfor k, v in pairs(t) do\n  n = n + k * -v ^ 2 % 3\nend\nwhile not (n > 0x1F) and #t == 0 do\n"
     "  n = n + 1.5e3; break\nend\nrepeat\n  local s = call 'PING' .. \"x\" .. t[1][2].a:b(n)(n)\n  n = s\nuntil n ~= 1 or n <= 2\n"
     "do\n  local f = function(...)\n    return ...\n  end\n  t[1], t.x = f(1), nil\nend\nlocal a, b\na, b = n, true\nreturn a, b;\n",
     None),
]

BAD = [
    ("an undefined name", {}, "local x = 1\nreturn x + y\n", ["q/s.lua:2: error: `y` is declared nowhere"]),
    ("an undefined name in a module", {"a": "\n\nlocal A = b\n"}, "return A\n",
     ["q/lib/a.lua:3: error: `b` is declared nowhere"]),
    ("a name that is declared below", {}, "return f()\nlocal function f()\nend\n", ["s.lua:1: error: `f` is declared"]),
    ("a local beyond its block", {}, "if KEYS[1] then\n  local x = 1\n  error(x)\nend\nreturn x\n",
     ["q/s.lua:5: error: `x` is declared nowhere"]),
    ("a local in its own value", {}, "local x = x\nreturn x\n", ["q/s.lua:1: error: `x` is declared nowhere"]),
    ("a name that no script uses", {"a": TWO + A}, "return 1\n",
     ["q/lib/a.lua:1: error: no script uses `two`", "q/lib/a.lua:4: error: no script uses `call`"]),
    ("a function that no script uses in place of a call", {"a": INLINE}, "return MAX\n",
     ["q/lib/a.lua:4: error: no script uses `has`"]),
    ("a constant that no script uses", {"a": "local MAX = 8\n"}, "return 1\n", ["q/lib/a.lua:1: error: no script uses `MAX`"]),
    ("two constants of a name", {"a": "local MAX = 8\n", "b": "local MAX = 9\n"}, "return MAX\n",
     ["q/lib/b.lua:1: error: `MAX` is declared in q/lib/a.lua, too"]),
    ("a call in an argument of a function that is inlined", {"a": INLINE}, "return has(tostring(MAX), MAX)\n",
     ["q/s.lua:1: error: expected 2 names or values for `has`"]),
    ("an argument that is missing", {"a": INLINE}, "return has(MAX)\n", ["q/s.lua:1: error: expected 2 names or values for `has`"]),
    ("an argument too many", {"a": INLINE}, "return has(MAX, MAX, MAX)\n", ["q/s.lua:1: error: expected 2 names or values for `has`"]),
    ("more than one statement to be inlined", {"a": "--- @inline\n" + STATE.split("\n\n")[1]}, "return 1\n",
     ["q/lib/a.lua:1: error: expected a function of one `return` below this line"]),
    ("a local that nothing uses", {}, "local x, _, y = 1, 2, 3\nreturn y\n", ["q/s.lua:1: error: nothing uses `x`"]),
    ("a local that hides a name", {"a": TWO}, "local function f(two)\n  return two\nend\nreturn f(two())\n",
     ["q/s.lua:1: error: a local hides `two` of q/lib/a.lua"]),
    ("a loop that hides a name, in a module", {"a": TWO, "b": "local function f()\n  for two = 1, 2 do\n  end\nend\n"},
     "return f(two())\n", ["q/lib/b.lua:2: error: a local hides `two` of q/lib/a.lua"]),
    ("two declarations of a name", {"a": TWO, "b": "local two = 2\n"}, "return two\n",
     ["q/lib/b.lua:1: error: `two` is declared in q/lib/a.lua, too"]),
    ("declarations that need each other",
     {"a": "local function f()\n  return g()\nend\n\nlocal function g()\n  return f()\nend\n"}, "return f()\n",
     ["error: `f` needs itself by way of others"]),
    ("a module that does something", {"a": A + "call('PING')\n"}, "return call\n",
     ["q/lib/a.lua:2: error: expected local before `call`"]),
    ("a step that is missing", {}, "--- @step \"steps/x.lua\"\nreturn 1\n", ["q/s.lua:1: error: there is no step steps/x.lua"]),
    ("a mark that is no step", {}, "--- @include \"lib/x.lua\"\nreturn 1\n", ["q/s.lua:1: error: expected --- @step"]),
    ("Lua that is wrong", {}, "if KEYS[1]\n  return 1\nend\n", ["q/s.lua:2: error: expected then before `return`"]),
    ("a block without an end", {}, "if KEYS[1] then\n  return 1\n", ["q/s.lua:2: error: expected end before `the end`"]),
    ("an end too many", {}, "return 1\nend\n", ["q/s.lua:2: error: expected the end before `end`"]),
    ("a long text", {}, "return [[x\n]]\n", ["q/s.lua:1: error: a text must end on its line"]),
]


def main():
    failed = 0
    for what, modules, script, expected in GOOD:
        shared = {"c": TWO + "\nlocal UNUSED = 1\n"} if what.startswith("a declaration that shared") else None
        found = linked(modules, script, shared=shared)
        if found != (expected or script):
            failed += 1
            print(f"{what}: found\n{found}")
    steps = {"x": "-- x.lua\nlocal y = x + two()\n--- @step \"steps/z.lua\"\n", "z": "y = y + 1\n"}
    found = linked({"a": TWO}, "local x = 1\nif x then\n  --- @step \"steps/x.lua\"\n  return y\nend\n", steps)
    if found != ("local x = 1\nif x then\n  local function two()\n    return 2\n  end\n  local y = x + two()\n  y = y + 1\n"
                 "  return y\nend\n"):
        failed += 1
        print(f"steps: found\n{found}")
    for what, modules, script, expected in BAD:
        found = linked(modules, script)
        if not all(text in found for text in expected):
            failed += 1
            print(f"{what}: expected {expected}, found\n{found}")
    os.environ["HF_LINK_UNUSED"] = "1"  # a mutant is built so
    if linked({"a": TWO}, "local x\nreturn 1\n") != "local x\nreturn 1\n":
        failed += 1
        print("names that nothing uses: expected the script as it was")
    del os.environ["HF_LINK_UNUSED"]
    started = time.monotonic()
    for name in ("queue", "lock"):
        with tempfile.TemporaryDirectory() as out:
            subprocess.run([LINKER, os.path.join(SOURCE, name, "lua"), os.path.join(SOURCE, "redis/lua/lib"), out, ""],
                           check=True)
    took = time.monotonic() - started
    print(f"all scripts in {took:.3f} s, {len(GOOD) + 1 + len(BAD)} cases, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
