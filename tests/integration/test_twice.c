/* test_twice.c - every script, sent twice with the same arguments, and once after its
 * time.
 *
 * A request whose answer is lost is sent again, so the second one must find the result of
 * the first and change nothing. The header of each script says what it answers then, and
 * this table checks it. Whether something changed is seen in a dump of the whole server:
 * types, values, and ends. Times may differ by what passes during the test. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "queue_scripts.h"
#include "tests/support/twice.h"

#define PREFIX "hf:{q}:"
#define OVER "hf:{over}:"
#define REGISTRY "hf:{/}:"
#define URGENT "{\"v\":1,\"type\":\"t\",\"priority\":\"high\"}\npayload"
#define HURRIED "{\"v\":1,\"type\":\"t\",\"start_within\":60000}\npayload"
#define KEYED "{\"v\":1,\"type\":\"t\",\"unique\":\"k\"}\npayload"
#define RECORD "{\"v\":1,\"type\":\"t\",\"created\":1700000000000}\npayload"

enum { LEASE_MS = 30000 };
static const unsigned long long FAR_MS = 1000000000000;

static char fence[32];      /* of the jobs a1 and a2, which worker w1 holds */
static char over_fence[32]; /* of o1 and o2 in the queue `over` */
static unsigned long long number, clock_ms; /* the clock of `q`, as it was read last */

/* In the arguments $F is the fence, $G that of the queue `over`, $R a record, $U one of a
 * high priority, $H one that expires, and $K one with a unique key; for $clock and others
 * see expand_reading(). `counted`: what the second sending added to a
 * counter of meta, "lost 1". */

#define JOB_LINE "{\"v\":1,\"type\":\"t\",\"created\":T}\n"
#define STATS "0 T 0 3 1 2 1 7 0 1 0 0 0 T T 0 0 0 1 0 0 0 0 0 0 0 0 0 T 1 0 0"
#define WORDS "{\"type\":\"t\"}\nresult"

static const hf_sending table[] = {
    {.what = "enqueue by a known producer",
     .script = &hf_lua_queue_enqueue,
     .args = {"p", "1", "$T", "60000", "0", "n1", "0", "$R", "n2", "-5000", "$R"},
     .not_after = 3,
     .first = "0 T 0 {}",
     .second = "0 T 1 {}"},
    {.what = "enqueue by nobody",
     .script = &hf_lua_queue_enqueue,
     .args = {"", "0", "$T", "0", "0", "n1", "0", "$R", "r1", "0", "$R", "a1", "0", "$R",
              "d1", "0", "$R"},
     .not_after = 3,
     .first = "0 T 0 {0 -1 -6 -7}",
     .second = "0 T 0 {-1 -1 -6 -7}"},
    {.what = "enqueue of what must be new and is not",
     .script = &hf_lua_queue_enqueue,
     .args = {"p", "1", "$T", "60000", "0", "n1", "0", "$R", "r1", "0", "$R", "n2", "0",
              "$R", "-n"},
     .not_after = 3,
     .first = "-1 T 0 {0 -1 0}",
     .reads = true},
    {.what = "enqueue of what must be new, beside what was chosen",
     .script = &hf_lua_queue_enqueue,
     .args = {"p", "1", "$T", "60000", "0", "r1", "0", "$R", "n1", "0", "$R", "n2", "0",
              "$R", "-n"},
     .not_after = 3,
     .first = "0 T 0 {-1 0 0}",
     .second = "0 T 1 {}"},
    {.what = "enqueue with options",
     .script = &hf_lua_queue_enqueue_with,
     .args = {"p", "1", "$T", "60000", "0", "n1", "0", "$U", "n2", "-5000", "$H"},
     .not_after = 3,
     .first = "0 T 0 {}",
     .second = "0 T 1 {}"},
    {.what = "enqueue with options by nobody",
     .script = &hf_lua_queue_enqueue_with,
     .args = {"", "0", "$T", "0", "0", "n1", "0", "$U", "r1", "0", "$U"},
     .not_after = 3,
     .first = "0 T 0 {0 -1}",
     .second = "0 T 0 {-1 -1}"},
    {.what = "enqueue with a unique key",
     .script = &hf_lua_queue_enqueue_with,
     .args = {"p", "1", "$T", "60000", "0", "n1", "0", "$K", "n2", "0", "$K"},
     .not_after = 3,
     .first = "0 T 0 {0 -1} {2 skipped n1 -1}",
     .second = "0 T 1 {0 -1} {2 skipped n1 -1}"},
    {.what = "claim",
     .script = &hf_lua_queue_claim,
     .args = {"w2", "1", "2", "30000", "$T", "0", "doubted", "2", "3 100 1000000"},
     .not_after = 5,
     .first = "0 T F T 1 0 0 T r1 " JOB_LINE "payload r2 " JOB_LINE "payload",
     .second = "0 T F T 0 0 0 T r3 " JOB_LINE "payload",
     .again = true},
    {.what = "claim of a job whose lease is over",
     .script = &hf_lua_queue_claim,
     .keys = {OVER},
     .args = {"w2", "1", "2", "30000", "$T", "0", "", "2", "3 100 1000000"},
     .not_after = 5,
     .first = "0 T F 0 0 {o1 1 } 0 {T} o1 " JOB_LINE "payload",
     .second = "0 T F 0 0 0 0"},
    {.what = "unclaim",
     .script = &hf_lua_queue_unclaim,
     .args = {"w1", "1"},
     .first = "0 T 2",
     .second = "0 T 0"},
    {.what = "renew",
     .script = &hf_lua_queue_renew,
     .args = {"w1", "40000", "$T", "20000", "0", "a1", "$F", "a2", "$F", "r1", "$F"},
     .not_after = 3,
     .first = "0 T {0 0 -2}"},
    {.what = "renew of a lease that is over, and of one whose lock has ended",
     .script = &hf_lua_queue_renew,
     .keys = {OVER},
     .args = {"w9", "40000", "$T", "20000", "0", "o1", "$G", "o2", "$G"},
     .not_after = 3,
     .first = "0 T {-2 0}"},
    {.what = "renew that reports runs",
     .script = &hf_lua_queue_renew,
     .args = {"w1", "40000",      "$T",           "20000", "12",       "a1",
              "$F", "a2",         "$F",           "1",     "progress", "40 half way",
              "1",  "checkpoint", "7 row 17",     "2",     "log",      "1 0 a line\n",
              "2",  "log",        "1 7 another\n"},
     .not_after = 3,
     .first = "0 T"},
    {.what = "renew that reports a run that it lost",
     .script = &hf_lua_queue_renew,
     .args = {"w1", "40000", "$T", "20000", "6", "r1", "$F", "1", "progress", "40 ", "1",
              "checkpoint", "7 row 17"},
     .not_after = 3,
     .first = "0 T {-2}"},
    {.what = "complete",
     .script = &hf_lua_queue_complete,
     .args = {"w1", "$T", "0", "1", "$F", "2", "a1", "a2"},
     .not_after = 2,
     .first = "0 T",
     .second = "0 T {-3 -3}",
     .counted = "lost 2"},
    {.what = "complete, known to be sent again",
     .script = &hf_lua_queue_complete,
     .args = {"w1", "$T", "2", "1", "$F", "2", "a1", "a2"},
     .not_after = 2,
     .first = "0 T",
     .second = "0 T {-3 -3}"},
    {.what = "complete of what it does not hold",
     .script = &hf_lua_queue_complete,
     .args = {"w1", "$T", "0", "2", "$F", "2", "1", "1", "r1", "none", "a1"},
     .not_after = 2,
     .first = "0 T {-2 -3 -2}",
     .counted = "lost 3"},
    {.what = "complete with a fence that is none",
     .script = &hf_lua_queue_complete,
     .args = {"w1", "$T", "0", "1", "a1", "2", "none", "a2"},
     .not_after = 2,
     .first = "0 T {-3 -2}",
     .counted = "lost 2"},
    {.what = "complete with a fence for more jobs than there are",
     .script = &hf_lua_queue_complete,
     .args = {"w1", "$T", "0", "1", "1", "9000000000000", "a1", "a2"},
     .not_after = 2,
     .first = "0 T {-2 -2}",
     .counted = "lost 2"},
    {.what = "keep",
     .script = &hf_lua_queue_keep,
     .args = {"w1", "$T", "0", "10", "100000", "a1", "$F", "60000", WORDS, "a2", "$F",
              "60000", WORDS},
     .not_after = 2,
     .first = "0 T",
     .second = "0 T {-3 -3}",
     .counted = "lost 2"},
    {.what = "keep where there is no room",
     .script = &hf_lua_queue_keep,
     .args = {"w1", "$T", "0", "0", "100000", "a1", "$F", "60000", WORDS},
     .not_after = 2,
     .first = "0 T",
     .second = "0 T {-3}",
     .counted = "lost 1"},
    {.what = "keep of what it does not hold",
     .script = &hf_lua_queue_keep,
     .args = {"w1", "$T", "1", "10", "100000", "r1", "$F", "60000", WORDS},
     .not_after = 2,
     .first = "0 T {-2}",
     .counted = "unsure 1"},
    {.what = "retry",
     .script = &hf_lua_queue_retry,
     .args = {"w1", "$T", "0", "a1", "$F", "60000", "it broke", "5", "1"},
     .not_after = 2,
     .first = "0 T",
     .second = "0 T {-2}",
     .counted = "lost 1"},
    {.what = "retry, known to be sent again",
     .script = &hf_lua_queue_retry,
     .args = {"w1", "$T", "1", "a1", "$F", "60000", "it broke", "5", "1"},
     .not_after = 2,
     .first = "0 T",
     .second = "0 T {-2}",
     .counted = "unsure 1"},
    {.what = "release",
     .script = &hf_lua_queue_release,
     .args = {"w1", "$T", "0", "a1", "$F", "1700000000000", "unstarted", "", "a2", "$F",
              "10000", "unstarted", "no handler"},
     .not_after = 2,
     .first = "0 T",
     .second = "0 T {-2 -2}",
     .counted = "lost 2"},
    {.what = "release for later, as its handler wants",
     .script = &hf_lua_queue_release,
     .args = {"w1", "$T", "1", "a1", "$F", "60000", "later", ""},
     .not_after = 2,
     .first = "0 T",
     .second = "0 T {-2}",
     .counted = "unsure 1"},
    {.what = "release of a neighbour, and of one whose pool is down",
     .script = &hf_lua_queue_release,
     .args = {"w1", "$T", "0", "a1", "$F", "1700000000000", "neighbour",
              "neighbour of a9", "a2", "$F", "60000", "down", "the pool is down"},
     .not_after = 2,
     .first = "0 T",
     .second = "0 T {-2 -2}",
     .counted = "lost 2"},
    {.what = "release of what its handler cancels",
     .script = &hf_lua_queue_release,
     .args = {"w1", "$T", "1", "a1", "$F", "0", "cancelled", "too late"},
     .not_after = 2,
     .first = "0 T",
     .second = "0 T {-3}"},
    {.what = "refuse",
     .script = &hf_lua_queue_refuse,
     .args = {"w1", "$T", "0", "100", "1000000", "3600000", "a1", "$F", "no handler",
              "a2", "$F", "no handler"},
     .not_after = 2,
     .first = "0 T {0 0}",
     .second = "0 T {-2 -2}",
     .counted = "lost 2"},
    {.what = "refuse for the last time",
     .script = &hf_lua_queue_refuse,
     .args = {"w1", "$T", "1", "100", "1000000", "0", "a1", "$F", "no handler"},
     .not_after = 2,
     .first = "0 T {-7}",
     .second = "0 T {-2}",
     .counted = "unsure 1"},
    {.what = "crash",
     .script = &hf_lua_queue_crash,
     .args = {"w1", "$T", "0", "100", "1000000", "3", "a1", "$F", "1700000000000",
              "killed by signal 11", "a2", "$F", "1700000000000", "exited with 7"},
     .not_after = 2,
     .first = "0 T {0 0}",
     .second = "0 T {-2 -2}",
     .counted = "lost 2"},
    {.what = "crash for the last time",
     .script = &hf_lua_queue_crash,
     .args = {"w1", "$T", "1", "100", "1000000", "1", "a1", "$F", "1700000000000",
              "killed by signal 11"},
     .not_after = 2,
     .first = "0 T {-7}",
     .second = "0 T {-2}",
     .counted = "unsure 1"},
    {.what = "bury",
     .script = &hf_lua_queue_bury,
     .args = {"w1", "$T", "1", "100", "1000000", "a1", "$F", "1", "attempts", "it broke",
              "5"},
     .not_after = 2,
     .first = "0 T",
     .second = "0 T {-2}",
     .counted = "unsure 1"},
    {.what = "bury where dead is full",
     .script = &hf_lua_queue_bury,
     .args = {"w1", "$T", "0", "0", "1000000", "a1", "$F", "1", "attempts", "it broke",
              "5"},
     .not_after = 2,
     .first = "0 T",
     .second = "0 T {-3}",
     .counted = "lost 1"},
    {.what = "check",
     .script = &hf_lua_queue_check,
     .args = {"w1", "60000", "0", "30000", "m", "200000", ""},
     .first = "0 T 0 {0} 30000 {0} {1} {{T F 0}}"},
    {.what = "check that finds leases over",
     .script = &hf_lua_queue_check,
     .args = {"w1", "60000", "0", "30000", "m", "200000", "$clock"},
     .first = "0 T 0 {0} 30000 {0} {1} {{T F 0}}",
     .second = "0 T 0 {0} 30000 {0} {1} {{0 0 0}}"},
    {.what = "check by a worker with a longer lease",
     .script = &hf_lua_queue_check,
     .args = {"w2", "60000", "0", "90001", "m", "200000", "$clock"},
     .first = "0 T 0 {0} 30000 {0} {1} {{T F 2}}"},
    {.what = "check that gives a baton back",
     .script = &hf_lua_queue_check,
     .args = {"w1", "0", "1", "30000", "m", "200000", ""},
     .first = "0 T 0 {0} 30000 {0} {1} {{T F 0}}"},
    {.what = "read",
     .script = &hf_lua_queue_read,
     .args = {"m", "200000", ""},
     .first = "0 T {T F 0}",
     .reads = true}, /* beside the time of the clock */
    {.what = "read of a queue where nothing runs",
     .script = &hf_lua_queue_read,
     .keys = {"hf:{old}:"},
     .args = {"m", "200000", ""},
     .first = "0 T {0 0 0}",
     .reads = true},
    {.what = "read that shows a new reading",
     .script = &hf_lua_queue_read,
     .args = {"m", "200000", "$new"},
     .first = "0 T {T F 30000}"},
    {.what = "read of two queues that finds leases of the first one over",
     .script = &hf_lua_queue_read,
     .keys = {PREFIX, OVER},
     .args = {"m", "200000", "$clock", "$clock"},
     .first = "0 T {T F 0} {T F 0}",
     .second = "0 T {0 0 0} {T F 0}"},
    {.what = "read a moment before leases are over",
     .script = &hf_lua_queue_read,
     .args = {"m", "200000", "$young"},
     .first = "0 T {T F 2}"},
    {.what = "read with a reading that Redis's clock contradicts",
     .script = &hf_lua_queue_read,
     .args = {"m", "200000", "$twin"},
     .first = "0 T {T F T}"},
    {.what = "read with what was read of another clock",
     .script = &hf_lua_queue_read,
     .args = {"m", "200000", "$another"},
     .first = "0 T {T F 0}",
     .reads = true},
    {.what = "read with what was read before the leases began",
     .script = &hf_lua_queue_read,
     .args = {"m", "200000", "$before"},
     .first = "0 T {T F 0}"},
    {.what = "present",
     .script = &hf_lua_queue_present,
     .args = {"w1", "60000", " t "},
     .first = "0 T F"},
    {.what = "present that says goodbye",
     .script = &hf_lua_queue_present,
     .args = {"w1", "0", ""},
     .first = "0 T"},
    {.what = "beat",
     .script = &hf_lua_queue_beat,
     .keys = {REGISTRY},
     .args = {"w1", "60000", "{}"},
     .first = "0 T 0"},
    {.what = "beat that says goodbye",
     .script = &hf_lua_queue_beat,
     .keys = {REGISTRY},
     .args = {"w0", "0", ""},
     .first = "0 T 0"},
    {.what = "edit of what waits",
     .script = &hf_lua_queue_edit,
     .args = {"$T", "r1", "1700000000000", "low", "1", "other"},
     .not_after = 1,
     .first = "0 T"},
    {.what = "edit of what runs",
     .script = &hf_lua_queue_edit,
     .args = {"$T", "a1", "0", "", "0", ""},
     .not_after = 1,
     .first = "-6 T",
     .reads = true},
    {.what = "cancel of what waits",
     .script = &hf_lua_queue_cancel,
     .args = {"$T", "r1"},
     .not_after = 1,
     .first = "0 T",
     .second = "-3 T"},
    {.what = "cancel by a request with a word",
     .script = &hf_lua_queue_cancel,
     .args = {"$W", "r1"},
     .not_after = 1,
     .first = "0 T"},
    {.what = "cancel of what runs by a request with a word",
     .script = &hf_lua_queue_cancel,
     .args = {"$W", "a1"},
     .not_after = 1,
     .first = "-6 T w1:F T T"},
    {.what = "delete by a request with a word",
     .script = &hf_lua_queue_delete,
     .args = {"$W", "0", "r1", "d1", "a1", "none"},
     .not_after = 1,
     .first = "0 T {0 0 -6 -3} {w1:F T}"},
    {.what = "requeue by a request with a word",
     .script = &hf_lua_queue_requeue,
     .args = {"$W", "$T", "$T", "10", "5", "d1", "l1"},
     .not_after = 1,
     .first = "0 T {0 -3}"},
    {.what = "edit by a request with a word",
     .script = &hf_lua_queue_edit,
     .args = {"$W", "r1", "1700000000000", "low", "1", "other"},
     .not_after = 1,
     .first = "0 T"},
    {.what = "pause by a request with a word",
     .script = &hf_lua_queue_pause,
     .args = {"$W", "1"},
     .not_after = 1,
     .first = "0 T"},
    {.what = "limits by a request with a word",
     .script = &hf_lua_queue_limits,
     .args = {"$W", "", "max_running", "5", "rate_limit", "100", "rate_per", "1000"},
     .not_after = 1,
     .first = "0 T"},
    {.what = "cancel of what runs",
     .script = &hf_lua_queue_cancel,
     .args = {"$T", "a1"},
     .not_after = 1,
     .first = "-6 T w1:F T T"},
    {.what = "cancel of what is dead",
     .script = &hf_lua_queue_cancel,
     .args = {"$T", "d1"},
     .not_after = 1,
     .first = "-7 T",
     .reads = true},
    {.what = "delete",
     .script = &hf_lua_queue_delete,
     .args = {"$T", "0", "r1", "d1", "a1", "none"},
     .not_after = 1,
     .first = "0 T {0 0 -6 -3} {w1:F T}",
     .second = "0 T {-3 -3 -6 -3} {w1:F T}"},
    {.what = "delete of what is none",
     .script = &hf_lua_queue_delete,
     .args = {"$T", "0", "none"},
     .not_after = 1,
     .first = "0 T {-3} {}",
     .reads = true},
    {.what = "delete of what has died",
     .script = &hf_lua_queue_delete,
     .args = {"$T", "$T", "r1", "d1", "a1"},
     .not_after = 1,
     .first = "0 T {-3 0 -3} {}",
     .second = "0 T {-3 -3 -3} {}"},
    {.what = "requeue",
     .script = &hf_lua_queue_requeue,
     .args = {"$T", "0", "0", "0", "0", "d1", "l1", "r1", "a1", "none"},
     .not_after = 1,
     .first = "0 T {0 0 0 -6 -3}"},
    {.what = "requeue of what has died, at a rate",
     .script = &hf_lua_queue_requeue,
     .args = {"$T", "$T", "$T", "10", "5", "d1", "l1"},
     .not_after = 1,
     .first = "0 T {0 -3}",
     .second = "0 T {-3 -3}"},
    {.what = "requeue of what has died since",
     .script = &hf_lua_queue_requeue,
     .args = {"$T", "1", "1", "0", "0", "d1"},
     .not_after = 1,
     .first = "0 T {-3}",
     .reads = true},
    {.what = "delete of what has died since",
     .script = &hf_lua_queue_delete,
     .args = {"$T", "1", "d1"},
     .not_after = 1,
     .first = "0 T {-3} {}",
     .reads = true},
    {.what = "purge of what is due",
     .script = &hf_lua_queue_purge,
     .args = {"$T", "ready", "$T", "2", "A"},
     .not_after = 1,
     .first = "0 T 2"},
    {.what = "purge of what has its time ahead",
     .script = &hf_lua_queue_purge,
     .args = {"$T", "delayed", "0", "10", "B"},
     .not_after = 1,
     .first = "0 T 1"},
    {.what = "purge of what is dead",
     .script = &hf_lua_queue_purge,
     .args = {"$T", "dead", "$T", "10", "C"},
     .not_after = 1,
     .first = "0 T 1"},
    {.what = "dead",
     .script = &hf_lua_queue_dead,
     .args = {"0", "", "$T", "10", "0"},
     .first = "0 T 0 {d1 T }",
     .reads = true},
    {.what = "pause",
     .script = &hf_lua_queue_pause,
     .args = {"$T", "1"},
     .not_after = 1,
     .first = "0 T"},
    {.what = "pause's end",
     .script = &hf_lua_queue_pause,
     .args = {"$T", "0"},
     .not_after = 1,
     .first = "0 T",
     .reads = true},
    {.what = "limits",
     .script = &hf_lua_queue_limits,
     .args = {"$T", "", "max_running", "5", "rate_limit", "100", "rate_per", "1000"},
     .not_after = 1,
     .first = "0 T"},
    {.what = "limits of a file",
     .script = &hf_lua_queue_limits,
     .args = {"$T", "5 0 0", "max_running", "5"},
     .not_after = 1,
     .first = "0 T"},
    {.what = "limits of a file that names none",
     .script = &hf_lua_queue_limits,
     .args = {"$T", "0 0 0", "max_running", "0"},
     .not_after = 1,
     .first = "0 T",
     .reads = true},
    {.what = "on_dead",
     .script = &hf_lua_queue_on_dead,
     .args = {"$T", "{\"*\":\"died\"}"},
     .not_after = 1,
     .first = "0 T"},
    {.what = "on_dead of a file that names none",
     .script = &hf_lua_queue_on_dead,
     .args = {"$T", ""},
     .not_after = 1,
     .first = "0 T",
     .reads = true},
    {.what = "shards",
     .script = &hf_lua_queue_shards,
     .keys = {"hf:{new}:"},
     .args = {"$T", "2 new/0-0 new/1-1"},
     .not_after = 1,
     .first = "0 T 2 new/0-0 new/1-1 "},
    {.what = "shards of a queue with jobs",
     .script = &hf_lua_queue_shards,
     .args = {"$T", "2 q/0-0 q/1-1"},
     .first = "0 T  jobs",
     .reads = true},
    {.what = "peek", .script = &hf_lua_queue_peek, .first = "0 T {1}", .reads = true},
    {.what = "stats", .script = &hf_lua_queue_stats, .first = STATS, .reads = true},
    {.what = "job",
     .script = &hf_lua_queue_job,
     .args = {"r1", "1", "0", "0"},
     .first = "0 T schedule T " JOB_LINE "payload 7  0 0 0  { 0 0} 0",
     .reads = true},
    {.what = "await",
     .script = &hf_lua_queue_await,
     .args = {"r1", "1", "0", "0", "c", "1"},
     .first = "0 T schedule T " JOB_LINE "payload 7  0 0 0  { 0 0} T"},
    {.what = "await of one that waits no more",
     .script = &hf_lua_queue_await,
     .args = {"l1", "0", "0", "0", "c", "0"},
     .first = "0 T schedule T " JOB_LINE " 7  0 0 0  { 0 0} 0",
     .reads = true},
    {.what = "await of what is dead",
     .script = &hf_lua_queue_await,
     .args = {"none", "1", "0", "0", "c", "1"},
     .first = "-3 T 0 0 ",
     .reads = true},
    {.what = "job that is none",
     .script = &hf_lua_queue_job,
     .args = {"none", "0", "0", "0"},
     .first = "-3 T 0 0 ",
     .reads = true},
    {.what = "logs of what has none",
     .script = &hf_lua_queue_logs,
     .args = {"a1", "0", "0"},
     .first = "0 T running",
     .reads = true},
    {.what = "list",
     .script = &hf_lua_queue_list,
     .args = {"ready", "r1", "1", ""},
     .first = "0 T r2 T {r2 T " JOB_LINE " 7  0 0 0 { 0 0}}",
     .reads = true},
    {.what = "list after what is not there",
     .script = &hf_lua_queue_list,
     .args = {"dead", "r1", "1", ""},
     .first = "-3 T",
     .reads = true},
    {.what = "why of what waits",
     .script = &hf_lua_queue_why,
     .args = {"r2"},
     .first = "0 T schedule T " JOB_LINE " 7  0 0 0 1 0 2 0 0 0 0 0 {w1 2} 0 ",
     .reads = true},
    {.what = "why of what is none",
     .script = &hf_lua_queue_why,
     .args = {"none"},
     .first = "-3 T",
     .reads = true},
    {.what = "permitted commands",
     .script = &hf_lua_queue_permitted,
     .args = {"GET", "SET"},
     .first = "0 T",
     .reads = true},
    {.what = "audit of jobs",
     .script = &hf_lua_queue_audit_jobs,
     .args = {"running", "0", "0", "0", "0"},
     .first = "0 T dead 0 2 {} {w1 2 T}",
     .reads = true},
    {.what = "audit of jobs that repairs",
     .script = &hf_lua_queue_audit_jobs,
     .args = {"jobs", "0", "0", "1", "$T"},
     .not_after = 5,
     .first = "0 T  0 8 {orphan 1 stray has a record and is in no set it goes to `dead` "
              "with the reason `orphan` 2} {}",
     .second = "0 T  0 8 {} {}"},
    {.what = "audit of keys",
     .script = &hf_lua_queue_audit_keys,
     .args = {"", "0", "0", "0", "0"},
     .first = "0 T crashes 0 15 {} {}",
     .reads = true},
    {.what = "audit of keys that repairs",
     .script = &hf_lua_queue_audit_keys,
     .args = {"crashes", "0", "0", "1", "$T"},
     .not_after = 5,
     .first =
         "0 T cancel 0 0 {mark 9 stray has left a mark in `crashes` it is removed 2} "
         "{}",
     .second = "0 T cancel 0 0 {} {}"},
    {.what = "cron_put",
     .script = &hf_lua_queue_cron_put,
     .args = {"$T", "s1", "4000000000000", "{\"every\":1000,\"job\":{\"type\":\"t\"}}\n",
              "", "0"},
     .not_after = 1,
     .first = "0 T 1",
     .second = "0 T 0"},
    {.what = "cron_put of a file",
     .script = &hf_lua_queue_cron_put,
     .args = {"$T", "s1", "4000000000000", "{\"every\":1000,\"job\":{\"type\":\"t\"}}\n",
              "start", "3"},
     .not_after = 1,
     .first = "0 T 1",
     .second = "0 T 0"},
    {.what = "cron_due",
     .script = &hf_lua_queue_cron_due,
     .args = {"10", "w1"},
     .first = "0 T",
     .reads = true},
    {.what = "cron_tick of none",
     .script = &hf_lua_queue_cron_tick,
     .args = {"$T", "1", "s1", "1", "1000", "2000", "1500", "0", "1", "j1", "1000",
              "1000"},
     .not_after = 1,
     .first = "0 T 0 {-2}",
     .reads = true},
    {.what = "cron_change of none",
     .script = &hf_lua_queue_cron_change,
     .args = {"$T", "s1", "remove", ""},
     .not_after = 1,
     .first = "-3 T",
     .reads = true},
    {.what = "cron_list",
     .script = &hf_lua_queue_cron_list,
     .args = {"0", "", ""},
     .first = "0 T 0",
     .reads = true},
    {.what = "cron_read",
     .script = &hf_lua_queue_cron_read,
     .args = {"0", "s1", "s2"},
     .first = "0 T 2",
     .reads = true},
    {.what = "past",
     .script = &hf_lua_queue_past,
     .args = {"w1", "1", "0", "172800000", "t", "d=1 r3=1", "*", "x=1"},
     .first = "0 T"},
    {.what = "past_read",
     .script = &hf_lua_queue_past_read,
     .args = {"10", "1", "2", "", "0"},
     .first = "0 T  {} {}",
     .reads = true},
    {.what = "runs",
     .script = &hf_lua_queue_runs,
     .args = {"w1 1700000000000 1 0 0\n"},
     .first = "0 T",
     .again = true},
    {.what = "runs_read",
     .script = &hf_lua_queue_runs_read,
     .args = {"0-0"},
     .first = "0 T 0",
     .reads = true},
    {.what = "register",
     .script = &hf_lua_queue_register,
     .keys = {REGISTRY},
     .args = {"new"},
     .first = "0 T"},
    {.what = "registry",
     .script = &hf_lua_queue_registry,
     .keys = {REGISTRY},
     .args = {"hf", "0"},
     .first = "0 T 0 {q}",
     .reads = true},
    {.what = "unregister",
     .script = &hf_lua_queue_unregister,
     .keys = {REGISTRY},
     .args = {"$T", "listed"},
     .not_after = 1,
     .first = "0 T"},
    {.what = "unregister by a request with a word",
     .script = &hf_lua_queue_unregister,
     .keys = {REGISTRY},
     .args = {"$W", "listed"},
     .not_after = 1,
     .first = "0 T"},
    {.what = "remove of what has jobs",
     .script = &hf_lua_queue_remove,
     .args = {"$T", "1"},
     .not_after = 1,
     .first = "0 T 4 2 1 0 1 0 1 0 1",
     .reads = true},
    {.what = "remove that looks",
     .script = &hf_lua_queue_remove,
     .keys = {"hf:{old}:"},
     .args = {"0", "0"},
     .first = "0 T 0 0 0 0 0 0 0 0 1",
     .reads = true},
    {.what = "remove",
     .script = &hf_lua_queue_remove,
     .keys = {"hf:{old}:"},
     .args = {"$T", "1"},
     .not_after = 1,
     .first = "0 T 0 0 0 0 0 0 0 0 0"},
    {.what = "remove by a request with a word",
     .script = &hf_lua_queue_remove,
     .keys = {"hf:{old}:"},
     .args = {"$W", "1"},
     .not_after = 1,
     .first = "0 T 0 0 0 0 0 0 0 0 0"},
    {.what = "forget",
     .script = &hf_lua_queue_forget,
     .keys = {REGISTRY},
     .args = {"gone", "$T"},
     .not_after = 2,
     .first = "0 T 1",
     .second = "0 T 0"},
    {.what = "forget of one that lives",
     .script = &hf_lua_queue_forget,
     .keys = {REGISTRY},
     .args = {"w0", "$T"},
     .first = "0 T 0",
     .reads = true},
};

/* ---- sending ---- */

static const char *expand(const char *arg);
static void prepare(void);
static void uncount(const char *counted);
static hf_twice suite = {.prefix = PREFIX,
                         .table = table,
                         .n = HF_COUNT(table),
                         .all = hf_lua_queue_all,
                         .prepare = prepare,
                         .fresh_ms = 100, /* lib/base.lua */
                         .expand = expand,
                         .uncount = uncount};

/* What machine `m` shows at 200,000 ms of its boot clock: a reading of the clock that is
 * past all leases of `q`; of Redis's time it knows that more has passed. $clock: older
 * than these are long; $twin: the same, but Redis's clock was far ahead then; $another:
 * the same of another clock; $young: not as old; $new: just read; $before: a reading
 * behind which the leases began. */
static const char *expand_reading(const char *what)
{
    static char texts[4][96];
    static size_t n;
    char *text = texts[n++ % HF_COUNT(texts)];
    const unsigned age_ms = what[0] == 'y'   ? LEASE_MS - 1
                            : what[0] == 'n' ? 1
                                             : 3 * LEASE_MS;
    (void)snprintf(text, sizeof texts[0], "%llu:%llu:%u:%llu",
                   what[0] == 'a' ? number - 1 : number,
                   what[0] == 'b' ? clock_ms - 2 * LEASE_MS : clock_ms, 200000 - age_ms,
                   what[0] == 't' ? clock_ms + FAR_MS : clock_ms - age_ms - 1000);
    return text;
}

static const char *expand(const char *arg)
{
    if (arg[0] == '$' && islower((unsigned char)arg[1]))
        return expand_reading(arg + 1);
    if (strcmp(arg, "$G") == 0)
        return over_fence;
    if (strcmp(arg, "$U") == 0)
        return URGENT;
    if (strcmp(arg, "$H") == 0)
        return HURRIED;
    if (strcmp(arg, "$K") == 0)
        return KEYED;
    return strcmp(arg, "$R") == 0 ? RECORD : strcmp(arg, "$F") == 0 ? fence : arg;
}

static void must(const hf_script *script, const char *const *args)
{
    redisReply *reply = hf_twice_send(&suite, script, NULL, args, false);
    if (reply->type != REDIS_REPLY_ARRAY || reply->element[0]->integer != 0)
        fail_msg("%s: %s", script->name, reply->str != NULL ? reply->str : "refused");
    freeReplyObject(reply);
}

/* Two jobs that w9 has claimed in another queue. The lease of o1 was found to be over;
 * only the lock of o2 has ended. */
static void prepare_over(void)
{
    static const char *const keys[HF_TWICE_KEYS] = {OVER};
    static const char *const two[] = {"",  "0",  "0",  "0", "0",  "o1",
                                      "0", "$R", "o2", "0", "$R", NULL};
    static const char *const claim[] = {"w9",    "1", "2", "30000",         "0",
                                        "20000", "",  "2", "3 100 1000000", NULL};
    freeReplyObject(hf_twice_send(&suite, &hf_lua_queue_enqueue, keys, two, false));
    freeReplyObject(hf_twice_send(&suite, &hf_lua_queue_claim, keys, claim, false));
    (void)snprintf(over_fence, sizeof over_fence, "%s",
                   hf_fixture_command(&suite.redis, "HGET %s fence", OVER "meta"));
    (void)hf_fixture_command(&suite.redis, "ZADD %s XX 0 o1", OVER "running");
    (void)hf_fixture_command(&suite.redis, "DEL %s %s", OVER "lock:o1", OVER "lock:o2");
}

/* One dead job, two held by w1, three that are due, one that is delayed; the clock was
 * read; and somebody has the baton. */
static void prepare(void)
{
    static const char *const first[] = {"", "0", "0", "0", "0", "d1", "0", "$R", NULL};
    static const char *const claim[] = {"w1",    "0", "1", "30000",         "0",
                                        "20000", "",  "1", "3 100 1000000", NULL};
    static const char *const bury[] = {"w1", "0", "0",       "100",     "1000000", "d1",
                                       "$F", "1", "handler", "no good", "5",       NULL};
    static const char *const two[] = {"",  "0",  "0",  "0", "0",  "a1",
                                      "0", "$R", "a2", "0", "$R", NULL};
    static const char *const claim_two[] = {"w1",    "1", "2", "30000",         "0",
                                            "20000", "",  "2", "3 100 1000000", NULL};
    static const char *const read[] = {"m0", "100000", "", NULL};
    static const char *const rest[] = {"",  "0",  "0",  "0",       "0",  "r1",
                                       "0", "$R", "r2", "0",       "$R", "r3",
                                       "0", "$R", "l1", "-500000", "$R", NULL};
    assert_string_equal(hf_fixture_command(&suite.redis, "FLUSHALL"), "OK");
    (void)hf_fixture_command(&suite.redis, "SADD hf:{/}:queues listed old over");
    (void)hf_fixture_command(&suite.redis, "HSET hf:{old}:meta enqueued 1");
    must(&hf_lua_queue_enqueue, first);
    must(&hf_lua_queue_claim, claim);
    (void)snprintf(fence, sizeof fence, "%s",
                   hf_fixture_command(&suite.redis, "HGET %s fence", PREFIX "meta"));
    must(&hf_lua_queue_bury, bury);
    must(&hf_lua_queue_enqueue, two);
    must(&hf_lua_queue_claim, claim_two);
    (void)snprintf(fence, sizeof fence, "%s",
                   hf_fixture_command(&suite.redis, "HGET %s fence", PREFIX "meta"));
    must(&hf_lua_queue_enqueue, rest);
    must(&hf_lua_queue_read, read);
    number = strtoull(hf_fixture_command(&suite.redis, "HGET %s #", PREFIX "readings"),
                      NULL, 10);
    clock_ms = strtoull(hf_fixture_command(&suite.redis, "HGET %s clock", PREFIX "meta"),
                        NULL, 10);
    prepare_over();
    (void)hf_fixture_command(&suite.redis, "ZPOPMIN %s", PREFIX "wake");
    (void)hf_fixture_command(&suite.redis, "ZADD hf:{/}:workers 1 w0");
    (void)hf_fixture_command(&suite.redis, "SET hf:{/}:worker:w0 {}");
    (void)hf_fixture_command(&suite.redis, "ZADD hf:{/}:workers 1 gone");
    (void)hf_fixture_command(&suite.redis, "HSET %s stray %s", PREFIX "jobs", RECORD);
    (void)hf_fixture_command(&suite.redis, "HSET %s stray 1", PREFIX "crashes");
    (void)hf_fixture_command(&suite.redis, "HSET %s uses m", PREFIX "meta");
}

/* Takes the counter back by what the table says, so that the rest can be compared. */
static void uncount(const char *counted)
{
    char field[16];
    int by;
    assert_int_equal(sscanf(counted, "%15s %d", field, &by), 2);
    if (hf_fixture_number(&suite.redis, "HINCRBY %s %s -%d", PREFIX "meta", field, by) ==
        0)
        (void)hf_fixture_command(&suite.redis, "HDEL %s %s", PREFIX "meta", field);
    /* The history counts late verdicts as well. */
    (void)hf_fixture_command(
        &suite.redis, "EVAL %s 0 %s !%s -%d",
        "for _, key in ipairs(redis.call('KEYS', ARGV[1] .. 'past:[t0-9]*')) do"
        " if redis.call('HEXISTS', key, ARGV[2]) == 1"
        "  and redis.call('HINCRBY', key, ARGV[2], ARGV[3]) == 0 then"
        "  redis.call('HDEL', key, ARGV[2]) end end",
        PREFIX, field, by);
}

/* ---- the tests ---- */

static void a_second_claim_leaves_the_first_ones_jobs_alone(void **state)
{
    static const char *const claim[] = {"w2", "1", "2", "30000",         "0",
                                        "0",  "",  "2", "3 100 1000000", NULL};
    char token[128];
    (void)state;
    prepare();
    must(&hf_lua_queue_claim, claim);
    (void)snprintf(token, sizeof token, "%s",
                   hf_fixture_command(&suite.redis, "GET %slock:r1", PREFIX));
    must(&hf_lua_queue_claim, claim);
    assert_string_equal(hf_fixture_command(&suite.redis, "GET %slock:r1", PREFIX), token);
    assert_string_not_equal(hf_fixture_command(&suite.redis, "GET %slock:r3", PREFIX),
                            token);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HF_TWICE_TESTS(&suite),
        cmocka_unit_test(a_second_claim_leaves_the_first_ones_jobs_alone),
    };
    hf_twice_up(&suite);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    hf_twice_down(&suite);
    return failures;
}
