/* commands.c - the table of all commands and their options (those of administration are
 * in options.c). --help, the manual page and the parser (args.c) know nothing else. To
 * add a command: a row here, its function in cli.h. */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/complete.h"
#include "cli/limits.h"
#include "cli/options.h"

static const hf_opt common[] = {
    {.name = "config",
     .letter = 'c',
     .kind = HF_OPT_TEXT,
     .value = "FILE",
     .help = "the configuration file"},
    {.name = "redis",
     .kind = HF_OPT_TEXT,
     .value = "URL",
     .help = "where Redis is; goes before REDIS_URL and the file"},
    {.name = "namespace",
     .kind = HF_OPT_TEXT,
     .value = "NS",
     .help = "what every key in Redis begins with; \"hf\""},
    {.name = "json", .help = "print one JSON object per line"},
    {.name = "help", .letter = 'h', .help = "print this"},
    {.name = "version", .hidden = true, .help = "print the version"},
    HF_OPT_END,
};

static const hf_opt enqueue_opts[] = {
    HF_OPT_QUEUE,
    {.name = "in",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .max = HF_DELAY_MAX_MS,
     .help = "not before so long from now: 10s, 5m, 2h, 1d"},
    {.name = "at",
     .kind = HF_OPT_TIME,
     .value = "TIME",
     .help = "not before this time: 2030-01-31T08:00:00Z, or @SECONDS since 1970"},
    {.name = "id",
     .kind = HF_OPT_TEXT,
     .value = "ID",
     .help = "the job's id: while a job of this id exists, another is not accepted"},
    {.name = "max-attempts",
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = HF_ATTEMPTS_MAX,
     .help = "the job is dead after so many failed attempts"},
    {.name = "timeout",
     .kind = HF_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = HF_TIMEOUT_MAX_MS,
     .help = "an attempt has failed after so long"},
    {.name = "wait", .help = "until the job is done (exit 0) or dead (exit 1)"},
    {.name = "bulk",
     .kind = HF_OPT_TEXT,
     .value = "FILE|-",
     .help = "jobs from a file, one JSON object per line"},
    {.name = "run",
     .kind = HF_OPT_TEXT,
     .value = "R",
     .help = "with --bulk: send the file again as the run R"},
    {.name = "atomic",
     .help = "with --bulk: all jobs or none; refuse more than one block"},
    HF_OPT_END,
};
static const hf_opt worker_opts[] = {
    {.name = "queue",
     .letter = 'q',
     .kind = HF_OPT_TEXT,
     .value = "Q",
     .many = true,
     .help = "serve this queue instead of those in the file; may be given again"},
    {.name = "concurrency",
     .letter = 'n',
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 1024,
     .help = "jobs at the same time"},
    {.name = "burst", .help = "stop when nothing is left, not even delayed"},
    HF_OPT_END,
};
static const hf_opt script_opts[] = {
    {.name = "sha1", .help = "print the SHA1 that EVALSHA wants, and nothing else"},
    HF_OPT_END};
static const hf_opt check_opts[] = {
    {.name = "reference", .hidden = true, .help = "print the table of all keys"},
    HF_OPT_END};
static const hf_opt doctor_opts[] = {
    {.name = "queue",
     .letter = 'q',
     .kind = HF_OPT_TEXT,
     .value = "Q",
     .help = "only this queue"},
    {.name = "idle",
     .help = "nothing works on it now: look for what was left over as well"},
    {.name = "fix", .help = "put right what is safe, then look once more"},
    HF_OPT_END,
};
static const hf_opt demo_opts[] = {
    {.name = "keep",
     .help = "keep the directory with the handlers, their notes and the logs"},
    {.name = "svg",
     .kind = HF_OPT_TEXT,
     .value = "FILE",
     .help = "where the picture goes; holdfast-demo-PID.svg in $TMPDIR or /tmp"},
    HF_OPT_END,
};
static const hf_opt bench_opts[] = {
    {.name = "jobs",
     .kind = HF_OPT_INT,
     .value = "N",
     .min = 1,
     .max = 10000000,
     .help = "so many jobs are enqueued and processed; 100000"},
    {.name = "payload",
     .kind = HF_OPT_INT,
     .value = "B",
     .max = HF_PAYLOAD_DEFAULT,
     .help = "bytes of each job's payload; 100"},
    {.name = "concurrency",
     .letter = 'n',
     .kind = HF_OPT_INT,
     .value = "C",
     .min = 1,
     .max = 1024,
     .help = "jobs at the same time; 16"},
    HF_OPT_END,
};
static const hf_opt help_opts[] = {
    {.name = "man", .hidden = true, .help = "print the manual page"},
    {.name = "completion",
     .kind = HF_OPT_CHOICE,
     .value = "SHELL",
     .choices = HF_SHELLS,
     .hidden = true,
     .help = "print what this shell needs to complete our words"},
    HF_OPT_END,
};

static const hf_command commands[] = {
    {.name = "enqueue",
     .operands = "TYPE [PAYLOAD|-]",
     .max_operands = 2,
     .opts = enqueue_opts,
     .run = hf_cmd_enqueue,
     .section = "jobs",
     .help = "put a job into a queue",
     .more =
         "Prints the job's id. The payload is any text; with \"-\" it is what standard "
         "input holds, any bytes. An id that exists already is no error, and changes "
         "nothing.\n"
         "With --bulk a file is read, one JSON object per line: type, payload (a text, "
         "or "
         "any JSON value, which is passed on byte for byte) or payload_base64, and if "
         "need "
         "be queue, in, at, id, max_attempts, timeout. It is sent in blocks of at most "
         "10,000 lines of one queue, each all or none. After a failure --run R with the "
         "run's id sends the file again: what was accepted is not accepted twice, even "
         "if "
         "the jobs have meanwhile been run. Redis remembers that for 24 hours."},
    {.name = "job show",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_show,
     .run = hf_cmd_job_show,
     .section = "jobs",
     .help = "show one job, whichever queue it is in"},
    {.name = "job list",
     .operands = "",
     .opts = hf_opts_list,
     .run = hf_cmd_job_list,
     .section = "jobs",
     .help = "list the jobs of a queue, page by page",
     .more = "DUE of a running job is the end of its lease, of a dead one when it died."},
    {.name = "job why",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_find,
     .run = hf_cmd_job_why,
     .section = "jobs",
     .help = "say what keeps a job, and what can be done about it",
     .more =
         "A line for each reason, what weighs most first. With --json one object "
         "with all figures, whose \"reasons\" are the words at the beginnings of the "
         "lines: dead, cancelling, running, retry, delayed, paused, clock, no_worker, "
         "no_worker_for_type, locked, max_running, rate, busy, behind, suspect; none: "
         "it starts at any moment."},
    {.name = "job retry",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_find,
     .run = hf_cmd_job_retry,
     .section = "jobs",
     .help = "run a dead or waiting job now",
     .more = "A dead one as if it were new, with no attempt counted; one that waits for "
             "its time or its next attempt, without waiting."},
    {.name = "job cancel",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_cancel,
     .run = hf_cmd_job_cancel,
     .section = "jobs",
     .help = "take a waiting job away, or ask a running one to end",
     .more =
         "The holder of a running job hears of it when it next renews its lease. A "
         "program gets TERM, and KILL after its handler's grace; a C handler is asked "
         "to stop. The job ends as cancelled, also if its holder dies before, unless "
         "it was done before it heard of it."},
    {.name = "job delete",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_delete,
     .run = hf_cmd_job_delete,
     .section = "jobs",
     .help = "remove a waiting or dead job for ever",
     .more = "A running job is not removed under its holder: job cancel ends it."},
    {.name = "dead list",
     .operands = "",
     .opts = hf_opts_dead_list,
     .run = hf_cmd_dead_list,
     .section = "jobs",
     .help = "list dead jobs and why they died, page by page"},
    {.name = "dead retry",
     .operands = "[ID]",
     .max_operands = 1,
     .opts = hf_opts_dead_retry,
     .run = hf_cmd_dead_retry,
     .section = "jobs",
     .help = "run a dead job again, or all that are dead now",
     .more = "Attempts and crashes are counted from zero again. Prints how many jobs "
             "went back into the line. ^C stops it, and says how many did until then."},
    {.name = "dead purge",
     .operands = "[ID]",
     .max_operands = 1,
     .opts = hf_opts_dead_purge,
     .run = hf_cmd_dead_purge,
     .section = "jobs",
     .help = "remove a dead job for ever, or all that are dead now",
     .more = "Or those that the options name. Prints how many were removed. ^C stops it, "
             "and says how many were until then."},
    {.name = "queue list",
     .operands = "",
     .opts = hf_opts_queue_list,
     .run = hf_cmd_queue_list,
     .section = "queues",
     .help = "list all queues and how many jobs they hold"},
    {.name = "queue show",
     .operands = "[Q]",
     .max_operands = 1,
     .run = hf_cmd_queue_show,
     .section = "queues",
     .help = "show all there is to know of a queue, or of each"},
    {.name = "queue pause",
     .operands = "Q",
     .min_operands = 1,
     .max_operands = 1,
     .run = hf_cmd_queue_pause,
     .section = "queues",
     .help = "start no more of its jobs; those that run go on"},
    {.name = "queue resume",
     .operands = "Q",
     .min_operands = 1,
     .max_operands = 1,
     .run = hf_cmd_queue_resume,
     .section = "queues",
     .help = "start its jobs again"},
    {.name = "queue limit",
     .operands = "Q",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_limit,
     .run = hf_cmd_queue_limit,
     .section = "queues",
     .help = "limit how many of its jobs run, or how fast they are started",
     .more = "A limit that is not named stays as it is. It holds across all workers, "
             "until it "
             "is changed here or in the configuration file of a worker."},
    {.name = "queue purge",
     .operands = "Q",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_purge,
     .run = hf_cmd_queue_purge,
     .section = "queues",
     .help = "remove all its waiting and dead jobs for ever",
     .more = "Those that run are left alone. Prints how many were removed. ^C stops it, "
             "and says how many were until then."},
    {.name = "lock",
     .operands = "NAME[,NAME...] [--] COMMAND [ARGUMENT...]",
     .min_operands = 2,
     .max_operands = HF_ARGV_MAX,
     .opts = hf_opts_lock,
     .run = hf_cmd_lock,
     .program = true,
     .section = "locks",
     .help = "run a command while holding a lock, as flock(1) does",
     .more = HF_MORE_LOCK},
    {.name = "locks list",
     .operands = "",
     .opts = hf_opts_locks_list,
     .run = hf_cmd_locks_list,
     .section = "locks",
     .help = "list the locks that are held or waited for",
     .more = "It goes through all keys of Redis, a thousand at a time."},
    {.name = "locks show",
     .operands = "NAME",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_locks_show,
     .run = hf_cmd_locks_show,
     .section = "locks",
     .help = "show who holds a lock until when, and who waits for it",
     .more = "Exits with 1 if nobody holds it."},
    {.name = "locks release",
     .operands = "NAME",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_locks_release,
     .run = hf_cmd_locks_release,
     .section = "locks",
     .help = "take a lock away from who holds it",
     .more = "Its holder hears of it at once, and may work on until then: "
             "the next "
             "one's fence is higher. Exits with 1 if nobody holds it."},
    {.name = "locks revoke",
     .operands = "NAME",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_locks_revoke,
     .run = hf_cmd_locks_revoke,
     .section = "locks",
     .help = "ask who holds a lock to give it back",
     .more = "Its holder hears of it at once; what it does is "
             "its own. Exits with 1 if nobody holds it."},
    {.name = "locks fence-check",
     .operands = "RESOURCE FENCE",
     .min_operands = 2,
     .max_operands = 2,
     .opts = hf_opts_fence_check,
     .run = hf_cmd_locks_fence_check,
     .section = "locks",
     .help = "may the holder of a fence still write? exit 0: yes, 1: no",
     .more =
         "Remembers the highest fence that was shown for the resource: a lower one is "
         "refused from then on, and the same one of another owner."},
    {.name = "workers",
     .operands = "",
     .opts = hf_opts_workers,
     .run = hf_cmd_workers,
     .section = "workers",
     .help = "list the workers that live, and those that went silent",
     .more =
         "Silent: it was not heard of in time, and did not say that it ends. RUNNING, "
         "slots in use of all, is as of when it was HEARD, every 10 s."},
    {.name = "worker",
     .operands = "",
     .opts = worker_opts,
     .run = hf_cmd_worker,
     .section = "workers",
     .help = "run jobs with the programs of the configuration file",
     .more = "TERM and INT: claim nothing more, wait for the jobs that run "
             "(worker.shutdown_timeout), release the rest without counting an attempt, "
             "exit 0; "
             "a second one ends the waiting. TSTP: claim nothing more. CONT: claim "
             "again. HUP: "
             "take the configuration file as it is now, while jobs run; a bad file "
             "changes nothing, and the log names what needs a restart. Under systemd "
             "(Type=notify) it says when it is ready, and feeds the watchdog while Redis "
             "answers it."},
    {.name = "check",
     .operands = "",
     .opts = check_opts,
     .run = hf_cmd_check,
     .section = "workers",
     .help = "check a configuration file without running anything"},
    {.name = "doctor",
     .operands = "",
     .opts = doctor_opts,
     .run = hf_cmd_doctor,
     .section = "other",
     .help = "check that what is in Redis agrees with itself, and put it right",
     .more = "Looks at Redis itself, at every queue and at the workers, while all is "
             "used. Says of each finding what is wrong, what it means, and what would be "
             "repaired or has to be done by hand. Nothing is written without --fix; with "
             "it, what is safe is put right, and what is left is told. Exits with 1 if "
             "anything is found, or left."},
    {.name = "script enqueue",
     .operands = "",
     .opts = script_opts,
     .run = hf_cmd_script_enqueue,
     .bare = true,
     .section = "other",
     .help = "print the script that puts jobs into a queue, for other languages",
     .more =
         "What is printed is exactly what Redis runs; its first lines say what KEYS and "
         "ARGV hold. With --json: its SHA1 and its arguments beside it."},
    {.name = "demo",
     .operands = "",
     .opts = demo_opts,
     .run = hf_cmd_demo,
     .bare = true,
     .section = "other",
     .help = "see the promises kept: 300 jobs, and a worker that is killed",
     .more =
         "Starts a Redis of its own and three workers, kills one of them in the middle "
         "of ten jobs, and holds what the jobs' programs noted against what was "
         "promised. Draws when and where each run of a job was, as SVG, and says where "
         "that is. Takes about 10 seconds, and leaves nothing behind but this picture. "
         "Exits with 1 if a promise was not kept."},
    {.name = "bench",
     .operands = "",
     .opts = bench_opts,
     .run = hf_cmd_bench,
     .section = "other",
     .help = "measure how fast it is here, beside a bare loop of the same scripts",
     .more =
         "Without --redis it starts a Redis of its own. On one that is named it works in "
         "a "
         "namespace of its own, and takes its keys away again. Measures, one after the "
         "other: jobs enqueued and processed per second, how soon an idle worker picks a "
         "job "
         "up, how late delayed jobs start, how soon a job of a killed worker starts "
         "elsewhere, and the memory of a job in Redis. Takes less than a minute; "
         "whatever "
         "else the machine does meanwhile is in the figures."},
    {.name = "bench-victim",
     .operands = "",
     .run = hf_cmd_bench_victim,
     .bare = true,
     .hidden = true,
     .section = "other",
     .help = "a worker that the bench kills"},
    {.name = "__complete",
     .operands = "-- WORD...",
     .max_operands = HF_ARGV_MAX,
     .run = hf_cmd_complete,
     .bare = true,
     .hidden = true,
     .section = "other",
     .help = "print the words that a shell offers at the cursor"},
    {.name = "version",
     .operands = "",
     .run = hf_cmd_version,
     .bare = true,
     .section = "other",
     .help = "print the version"},
    {.name = "help",
     .operands = "[COMMAND]",
     .max_operands = 2,
     .opts = help_opts,
     .run = hf_cmd_help,
     .bare = true,
     .section = "other",
     .help = "print the list of commands, or the help of one"},
    HF_OPT_END,
};

const hf_command *hf_commands(void)
{
    return commands;
}

const hf_opt *hf_common_opts(void)
{
    return common;
}
