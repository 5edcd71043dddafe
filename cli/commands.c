/* commands.c - the table of all commands. Its shape is in table.h, and the options are in
 * options.c. To add a command: a row here, its function in cli.h. */
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/table.h"
#include "seen/reasons.h"

static const hf_opt common[] = {
    {.name = "config",
     .alike = "conf|file|config-file",
     .letter = 'c',
     .kind = HF_OPT_TEXT,
     .value = "FILE",
     .help = "the configuration file"},
    {.name = "redis",
     .alike = "url|host|server|redis-url",
     .kind = HF_OPT_TEXT,
     .value = "URL",
     .help = "the URL of Redis; overrides REDIS_URL and the file"},
    {.name = "namespace",
     .alike = "prefix|ns",
     .kind = HF_OPT_TEXT,
     .value = "NS",
     .help = "the prefix of every key in Redis; default \"hf\""},
    {.name = "json", .alike = "output|format", .help = "print one JSON object per line"},
    {.name = "help", .letter = 'h', .help = "print this help"},
    {.name = "version", .hidden = true, .help = "print the version"},
    HF_OPT_END,
};

static const hf_command commands[] = {
    {.name = "enqueue",
     .alike = "push|add|submit|publish|put|send|job add|job enqueue|job create|job "
              "push|queue add|queue push",
     .core = 1,
     .operands = "TYPE [PAYLOAD|-]",
     .max_operands = 2,
     .opts = hf_opts_enqueue,
     .run = hf_cmd_enqueue,
     .section = "jobs",
     .help = "put a job into a queue",
     .more =
         "Prints the job's id. The payload is any text; with \"-\" the command reads it "
         "from standard input, and it may hold any bytes. If a job with this id exists, "
         "the command succeeds and changes nothing. If its unique key is taken, it "
         "prints the id of the job that holds the key; --json says why.\nWith --bulk "
         "the command reads a "
         "file with one JSON object per line: type, payload (a text, or any JSON value, "
         "which is passed on byte for byte) or payload_base64, and optionally queue, in, "
         "at, id, headers, and the other options of a job with \"_\" for \"-\", such as "
         "max_attempts. It sends blocks of at most 10,000 lines of one "
         "queue, each all or none (with ids of your own in a queue with shards: for each "
         "shard). After a failure, send the file again with --run R and "
         "the id of the run. Jobs that were accepted are not accepted twice, even if "
         "they have run since. Redis remembers them for 24 hours. ^C stops it after the "
         "block on its way, and it prints how many were accepted.\nWith --wait-replicas "
         "and "
         "too few replicas the job is in Redis and may run, but a failover may lose it. "
         "The command prints its id and exits with 74. Send the job again under that id "
         "(--id), or the file with --run R.",
     .examples =
         "holdfast enqueue email '{\"to\":\"ada@example.org\"}'\n"
         "holdfast enqueue report 2030-01 --queue reports --in 10m --priority low\n"
         "holdfast enqueue email --id order-18 --unique ada --on-conflict replace\n"
         "holdfast enqueue report 2030-01 --queue reports --wait\n"
         "holdfast enqueue --bulk jobs.jsonl --queue mail --quiet"},
    {.name = "job show",
     .alike = "show|get|inspect|job get|job info|job status|job inspect",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_show,
     .run = hf_cmd_job_show,
     .section = "jobs",
     .help = "show one job, whichever queue it is in",
     .examples = "holdfast job show order-17\n"
                 "holdfast job show order-17 --payload"},
    {.name = "job list",
     .alike = "jobs|list|ls|job ls",
     .operands = "",
     .opts = hf_opts_list,
     .run = hf_cmd_job_list,
     .section = "jobs",
     .help = "list the jobs of a queue, page by page",
     .more = "DUE is the end of the lease of a running job, and the time at which a dead "
             "or done one ended.",
     .examples = "holdfast job list --queue mail --state ready\n"
                 "holdfast job list --limit 100 --json"},
    {.name = "job result",
     .alike = "result",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_find,
     .run = hf_cmd_job_result,
     .section = "jobs",
     .help = "print the result of a done job that is kept",
     .more = "Prints only the bytes that the handler gave: JSON compact and with a "
             "newline, anything else unchanged, and nothing if there is no result. With "
             "--json \"result\" is the value, or \"result_base64\" the bytes. Fails (1) "
             "if the job is not done, not kept any more, or unknown.",
     .examples = "holdfast job result report-7"},
    {.name = "job logs",
     .alike = "logs|log|tail|job log|job tail",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_logs,
     .run = hf_cmd_job_logs,
     .section = "jobs",
     .help = "print what the runs of a job have written to their logs",
     .more =
         "Redis keeps the last 64 KiB of each of the last 10 runs, until the job is "
         "done or removed: the outputs of programs whose handler has `logs: true`, and "
         "the lines of hf_run_log(). They are there within two seconds.\nWith --json "
         "each "
         "piece of a log is an object: `text`, and in `from` how many bytes of the run's "
         "log came before it. If the piece is not UTF-8, `text` has a question mark for "
         "each such byte, and `text_base64` has all its bytes. A log that was cut begins "
         "with a whole character, and with -f a character is printed when it is whole.",
     .examples = "holdfast job logs report-7\n"
                 "holdfast job logs report-7 --follow"},
    {.name = "job why",
     .alike = "why|explain|job explain",
     .core = 4,
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_find,
     .run = hf_cmd_job_why,
     .section = "jobs",
     .help = "explain what holds up a job, and what to do about it",
     .more = "Prints a line for each reason, the most important one first. With --json "
             "it prints one object with all figures, whose \"reasons\" are the words at "
             "the beginnings of the lines: " HF_REASON_WORDS
             "which means that it starts at any moment.",
     .examples = "holdfast job why order-17"},
    {.name = "job retry",
     .alike = "retry|requeue|job requeue|job run",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_find,
     .run = hf_cmd_job_retry,
     .section = "jobs",
     .help = "run a dead or waiting job now",
     .more =
         "A dead job starts again like a new one: its attempts count from zero. A job "
         "that waits for its time or for its next attempt becomes due now.",
     .examples = "holdfast job retry import-3"},
    {.name = "job edit",
     .alike = "edit|job update|job change|job set",
     .operands = "ID [PAYLOAD|-]",
     .min_operands = 1,
     .max_operands = 2,
     .opts = hf_opts_edit,
     .run = hf_cmd_job_edit,
     .section = "jobs",
     .help = "change a waiting job: its payload, its time, its priority",
     .more = "What is not given stays. A running or dead job is not changed (exit 1).",
     .examples = "holdfast job edit order-17 '{\"to\":\"bob@example.org\"}'\n"
                 "holdfast job edit order-17 --in 30m --priority high"},
    {.name = "job cancel",
     .alike = "cancel|kill|job kill|job stop|job abort",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_cancel,
     .run = hf_cmd_job_cancel,
     .section = "jobs",
     .help = "remove a waiting job, or ask a running one to end",
     .more = "The holder of a running job learns of it when it next renews its lease. A "
             "program gets TERM, and KILL after its handler's grace; a C handler is "
             "asked to stop. The job ends as cancelled, even if its holder dies first, "
             "unless it was done before the holder learned of it.",
     .examples = "holdfast job cancel order-17"},
    {.name = "job delete",
     .alike = "delete|remove|rm|job remove|job rm",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_delete,
     .run = hf_cmd_job_delete,
     .section = "jobs",
     .help = "remove a waiting, dead or kept job for ever",
     .more = "A running job is not removed; job cancel ends it.",
     .examples = "holdfast job delete order-17 --yes"},
    {.name = "dead list",
     .alike = "failed|failures|dead ls|dead show",
     .core = 5,
     .operands = "",
     .opts = hf_opts_dead_list,
     .run = hf_cmd_dead_list,
     .section = "jobs",
     .help = "list dead jobs and why they died, page by page",
     .examples = "holdfast dead list --queue mail --since 1d"},
    {.name = "dead retry",
     .alike = "retry|requeue|dead requeue|dead run",
     .operands = "[ID]",
     .max_operands = 1,
     .opts = hf_opts_dead_retry,
     .run = hf_cmd_dead_retry,
     .section = "jobs",
     .help = "run a dead job again, or all dead jobs",
     .more = "Attempts and crashes are counted from zero again. Prints how many jobs "
             "went back into the queue. ^C stops it, and it prints how many went back "
             "until then.",
     .examples = "holdfast dead retry import-3 --queue mail\n"
                 "holdfast dead retry --queue mail --type import --rate 10/s"},
    {.name = "dead purge",
     .alike = "dead delete|dead remove|dead clear|dead rm",
     .operands = "[ID]",
     .max_operands = 1,
     .opts = hf_opts_dead_purge,
     .run = hf_cmd_dead_purge,
     .section = "jobs",
     .help = "remove a dead job for ever, or all dead jobs",
     .more = "The options select which jobs. Prints how many were removed. ^C stops it, "
             "and it "
             "prints how many were removed until then.",
     .examples = "holdfast dead purge --queue mail --type import --yes"},
    {.name = "queue list",
     .alike = "queues|status|info|queue ls",
     .core = 3,
     .operands = "",
     .opts = hf_opts_queue_list,
     .run = hf_cmd_queue_list,
     .section = "queues",
     .help = "list all queues and how many jobs they hold",
     .examples = "holdfast queue list"},
    {.name = "queue show",
     .alike = "queue info|queue stats|queue status|queue get",
     .operands = "[Q]",
     .max_operands = 1,
     .run = hf_cmd_queue_show,
     .section = "queues",
     .help = "show all figures of a queue, or of every queue",
     .examples = "holdfast queue show mail"},
    {.name = "stats",
     .alike = "history|latency|percentiles|metrics|statistics|queue history",
     .operands = "",
     .opts = hf_opts_stats,
     .run = hf_cmd_stats,
     .section = "queues",
     .help = "show what ended in the last hour, by type, and how long it took",
     .more =
         "DONE and FAILED count attempts, DEAD counts jobs. RUN and WAIT are percentiles "
         "of "
         "these attempts: the run, and the wait from when the job was due until a worker "
         "claimed it. They are at most 19 % off. The type * stands for types beyond 64 "
         "in a "
         "step, and for jobs that died where their type was not known. Up to 3h the "
         "steps "
         "are minutes, above that ten minutes: the first one counts as a whole. The last "
         "minute comes up to 5 s after its end, and what ends after ten quiet minutes "
         "within 5 s. `history` in the file of a worker says "
         "how "
         "long it is kept.\n"
         "With --json each type is an object on a line, with the times in ms, and `runs` "
         "and "
         "`waits` as [[BOUND_MS, COUNT], ...]; the bound null is above 70 minutes.",
     .examples = "holdfast stats\n"
                 "holdfast stats --queue mail --since 10m --json"},
    {.name = "runs",
     .alike = "running|timeline|ps|processes|active|busy",
     .operands = "[Q]",
     .max_operands = 1,
     .opts = hf_opts_runs,
     .run = hf_cmd_runs,
     .section = "queues",
     .help = "show what runs, where and since when; with --follow, what ends",
     .more =
         "Asks the workers to report their runs while it looks; they hear of that "
         "within 10 s, and it waits for them. RUN counts the runs of the job: failed "
         "attempts "
         "and crashes. FOR, SLOT: \"-\" while the worker has not told, for example one "
         "of an "
         "older version. LEASE is when it ends unless it is renewed.\n"
         "With --follow it prints a line when a run has gone on for 2 s, when such a run "
         "ends, for the number of shorter ones in each second, and when a worker fell "
         "silent, until ^C. The word \"gone\" is for a run whose worker could not tell "
         "its end. Times are UTC.\n"
         "With --json each run is an object on a line: queue, id, type, run, attempt, "
         "worker, slot, outcome (runs, done, failed, dead, crashed, cancelled, released, "
         "lost, gone), start_ms, end_ms, lease_until_ms, progress. With --follow there "
         "are also objects with short_done and short_failed of a second of a worker, and "
         "with gone_ms of a worker that fell silent.",
     .examples = "holdfast runs\n"
                 "holdfast runs mail --json"},
    {.name = "queue pause",
     .alike = "pause|queue stop",
     .operands = "Q",
     .min_operands = 1,
     .max_operands = 1,
     .run = hf_cmd_queue_pause,
     .section = "queues",
     .help = "start no more jobs of a queue; running jobs go on",
     .examples = "holdfast queue pause mail"},
    {.name = "queue resume",
     .alike = "resume|unpause|queue start|queue unpause|queue continue",
     .operands = "Q",
     .min_operands = 1,
     .max_operands = 1,
     .run = hf_cmd_queue_resume,
     .section = "queues",
     .help = "start the jobs of a queue again",
     .examples = "holdfast queue resume mail"},
    {.name = "queue limit",
     .operands = "Q",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_limit,
     .run = hf_cmd_queue_limit,
     .section = "queues",
     .help = "limit the running jobs of a queue, or its rate",
     .more = "A limit that is not given stays as it is. Limits hold across all workers, "
             "until they are changed here or in the configuration file of a worker.",
     .examples = "holdfast queue limit mail --max-running 4 --rate 100/1m\n"
                 "holdfast queue limit mail --rate 0"},
    {.name = "queue shards",
     .operands = "Q [N]",
     .min_operands = 1,
     .max_operands = 2,
     .run = hf_cmd_queue_shards,
     .section = "queues",
     .help = "show the shards of a queue, or divide it into N before its first job",
     .more = "Each shard is a part of the queue with keys of its own. In a cluster the "
             "shards spread evenly over the nodes. The number is 2 to 64 and never "
             "changes. A queue that has jobs, is paused or has limits is not divided. "
             "Dividing a queue that has N shards already succeeds and changes nothing.",
     .examples = "holdfast queue shards clicks 8"},
    {.name = "queue purge",
     .alike = "purge|queue clear|queue empty|queue drain|queue flush",
     .operands = "Q",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_purge,
     .run = hf_cmd_queue_purge,
     .section = "queues",
     .help = "remove all waiting, dead and kept jobs of a queue for ever",
     .more = "Running jobs are left alone. Prints how many were removed. ^C stops it, "
             "and it prints how many were removed until then.",
     .examples = "holdfast queue purge mail --yes"},
    {.name = "queue remove",
     .alike = "queue delete|queue forget|queue rm|queue del|queue unregister",
     .operands = "Q",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_remove,
     .run = hf_cmd_queue_remove,
     .section = "queues",
     .help = "remove an empty queue from all lists, with its settings and counters",
     .more = "A queue that has jobs, schedules or live workers is not removed: the exit "
             "status is 1. A queue is listed again when a worker starts on it, or when a "
             "producer that connected later uses its name. A divided queue has the same "
             "shards then.",
     .examples = "holdfast queue remove mial --yes"},
    {.name = "cron list",
     .alike = "schedules|schedule list|crons|cron ls",
     .core = 6,
     .operands = "",
     .opts = hf_opts_cron_list,
     .run = hf_cmd_cron_list,
     .section = "schedules",
     .help = "list the schedules, by queue and id",
     .more = "ACCEPTED counts the jobs that its ticks made, SKIPPED the ticks that made "
             "no job because the last job was not over, DROPPED the missed ticks that "
             "made no job.",
     .examples = "holdfast cron list --queue mail"},
    {.name = "cron show",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_cron_show,
     .run = hf_cmd_cron_show,
     .section = "schedules",
     .help = "show one schedule",
     .examples = "holdfast cron show nightly"},
    {.name = "cron add",
     .alike = "schedule|schedule add|cron create|cron set",
     .operands = "ID TYPE [PAYLOAD|-]",
     .min_operands = 2,
     .max_operands = 3,
     .opts = hf_opts_cron_add,
     .run = hf_cmd_cron_add,
     .section = "schedules",
     .help = "add a schedule, or change it",
     .more =
         "Each of its ticks makes exactly one job of this type, however many workers "
         "serve the queue. The payload is any text; with \"-\" the command reads it from "
         "standard input. Its counts stay when it is changed. A schedule that a worker's "
         "file names is changed back only after a change of the file.",
     .examples =
         "holdfast cron add nightly report --cron '0 3 * * *' --tz Europe/Berlin\n"
         "holdfast cron add poll email --queue mail --every 30s --overlap allow"},
    {.name = "cron remove",
     .alike = "schedule remove|cron delete|cron rm",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_cron_one,
     .run = hf_cmd_cron_remove,
     .section = "schedules",
     .help = "remove a schedule; its jobs stay",
     .more = "One that a worker's file names comes back only when its entry in the file "
             "has changed, for example by another rev.",
     .examples = "holdfast cron remove nightly"},
    {.name = "cron pause",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_cron_one,
     .run = hf_cmd_cron_pause,
     .section = "schedules",
     .help = "stop a schedule; its ticks are dropped meanwhile",
     .examples = "holdfast cron pause nightly"},
    {.name = "cron resume",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_cron_one,
     .run = hf_cmd_cron_resume,
     .section = "schedules",
     .help = "let a schedule go on with its next tick",
     .examples = "holdfast cron resume nightly"},
    {.name = "cron run",
     .alike = "cron trigger|cron now",
     .operands = "ID",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_cron_one,
     .run = hf_cmd_cron_run,
     .section = "schedules",
     .help = "enqueue a job of a schedule now",
     .more = "Prints the id of the job. It has no part in the schedule: neither its "
             "ticks nor --overlap count it.",
     .examples = "holdfast cron run nightly"},
    {.name = "cron next",
     .operands = "EXPRESSION",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_cron_next,
     .run = hf_cmd_cron_next,
     .bare = true,
     .section = "schedules",
     .help = "print when a cron expression runs next, one UTC time per line",
     .more =
         "The expression has five fields, minute hour day month weekday, or six with the "
         "second first. A field is *, a number, a range 1-5, a list 1,15 or one of them "
         "with a step: */15, 8-18/2; 5/15 is 5-59/15. Months and weekdays have names "
         "(JAN, MON), 7 is Sunday. L is the last day of the month, LW its last Monday to "
         "Friday, 5L the last Friday, 5#2 the second one. Where neither day field begins "
         "with *, one of them is enough. @hourly, @daily, @weekly, @monthly and @yearly "
         "are known.\nIf minute or hour begin with *, the expression follows real time "
         "when the clocks change. Any other one runs right after a gap of less than 3 "
         "hours that swallowed its time, and only once where its time repeats.",
     .examples =
         "holdfast cron next '*/15 8-18 * * MON-FRI'\n"
         "holdfast cron next @daily --tz Europe/Berlin --from 2030-03-30T00:00:00Z -n 3"},
    {.name = "lock run",
     .also = "lock",
     .alike = "flock|acquire|locks run",
     .operands = "NAME[,NAME...] [--] COMMAND [ARGUMENT...]",
     .min_operands = 2,
     .max_operands = HF_ARGV_MAX,
     .opts = hf_opts_lock,
     .run = hf_cmd_lock,
     .program = true,
     .section = "locks",
     .help = "run a command while holding a lock, as flock(1) does",
     .more = HF_MORE_LOCK,
     .examples =
         "holdfast lock run nightly-backup --nonblock -- tar cf backup.tar worker.yaml\n"
         "holdfast lock run shop/report --shared --wait 10 -- cat jobs.jsonl\n"
         "holdfast lock run gpu --permits 2/8 -- env"},
    {.name = "lock list",
     .also = "locks list",
     .operands = "",
     .opts = hf_opts_locks_list,
     .run = hf_cmd_locks_list,
     .section = "locks",
     .help = "list the locks that are held or waited for",
     .more = "Scans all keys of Redis, a thousand at a time.",
     .examples = "holdfast lock list"},
    {.name = "lock show",
     .also = "locks show",
     .operands = "NAME",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_locks_show,
     .run = hf_cmd_locks_show,
     .section = "locks",
     .help = "show the holders, deadlines and waiters of a lock",
     .more = "Exits with 1 if the lock is free.",
     .examples = "holdfast lock show shop/stock"},
    {.name = "lock release",
     .also = "locks release",
     .operands = "NAME",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_locks_release,
     .run = hf_cmd_locks_release,
     .section = "locks",
     .help = "take a lock away from its holder",
     .more = "The holder learns of it at once, but until then it may work on. The next "
             "holder has a higher fence. Exits with 1 if the lock is free.",
     .examples = "holdfast lock release shop/stock --force --yes"},
    {.name = "lock revoke",
     .also = "locks revoke",
     .operands = "NAME",
     .min_operands = 1,
     .max_operands = 1,
     .opts = hf_opts_locks_revoke,
     .run = hf_cmd_locks_revoke,
     .section = "locks",
     .help = "ask the holder of a lock to release it",
     .more = "The holder learns of it at once, and decides what to do. Exits with 1 if "
             "the lock is free.",
     .examples = "holdfast lock revoke shop/stock"},
    {.name = "lock fence-check",
     .also = "locks fence-check",
     .operands = "RESOURCE FENCE",
     .min_operands = 2,
     .max_operands = 2,
     .opts = hf_opts_fence_check,
     .run = hf_cmd_locks_fence_check,
     .section = "locks",
     .help = "check a fence: exit 0 if it may still write, 1 if not",
     .more = "Remembers the highest fence that was shown for the resource. From then on "
             "it refuses a lower fence, and the same fence of another owner.",
     .examples =
         "holdfast lock fence-check shop/orders 33 --owner \"$HOLDFAST_LOCK_OWNER\""},
    {.name = "worker run",
     .also = "worker",
     .alike = "run|start|work|serve|consume|process|worker start",
     .core = 2,
     .operands = "[-- COMMAND]",
     .max_operands = HF_ARGV_MAX,
     .dashes = true,
     .logs = true,
     .opts = hf_opts_worker,
     .run = hf_cmd_worker,
     .section = "workers",
     .help = "run jobs with the programs of the configuration file",
     .more =
         "COMMAND, with its arguments, is a program that speaks pipe 1, as `python "
         "worker.py` with the Python library does: the worker starts some processes of "
         "it, and they run one job after another. It takes the place of the handlers of "
         "the file, names its types itself, and gets the whole environment. No file is "
         "needed then. If it never starts, "
         "the worker exits with 78 after three tries.\nWithout --queue and without "
         "`queues` in the file the worker serves `default`, and the queues that the "
         "programs of pools name.\nTERM and INT: claim "
         "nothing more, wait for the running jobs "
         "(worker.shutdown_timeout), release the rest without counting an attempt, exit "
         "0; a second signal ends the wait. TSTP: claim nothing more. CONT: claim again. "
         "HUP: reload the configuration file while jobs run; a bad file changes nothing, "
         "and the log names what needs a restart. Under systemd (Type=notify) the worker "
         "reports when it is ready, and feeds the watchdog while Redis answers.",
     .examples = "holdfast worker run -c worker.yaml\n"
                 "holdfast worker run -c worker.yaml --queue mail -n 8 --burst\n"
                 "holdfast worker run --queue mail --processes 2 -- python3 worker.py\n"
                 "holdfast worker run --dev --watch . -- python3 worker.py"},
    {.name = "worker list",
     .also = "workers",
     .alike = "status|ps|worker ls",
     .operands = "",
     .opts = hf_opts_workers,
     .run = hf_cmd_workers,
     .section = "workers",
     .help = "list the live workers, and the silent ones",
     .more = "A worker is silent if its heartbeats stopped and it did not sign off. "
             "RUNNING shows the slots in use of all slots, those of its pools "
             "too, at the time of "
             "HEARD; a worker reports every 10 s. STATE is `pool down` while a pool "
             "has no process that takes jobs, and `starting` before it has one.",
     .examples = "holdfast worker list\n"
                 "holdfast worker list --all --json"},
    {.name = "check",
     .alike = "validate|verify|lint|config|test",
     .operands = "",
     .opts = hf_opts_check,
     .run = hf_cmd_check,
     .section = "workers",
     .help = "check a configuration file without running anything",
     .examples = "holdfast check -c worker.yaml"},
    {.name = "conform",
     .alike = "conformance",
     .operands = "-- PROGRAM [ARGUMENT...]",
     .max_operands = HF_ARGV_MAX,
     .opts = hf_opts_conform,
     .run = hf_cmd_conform,
     .program = true,
     .bare = true,
     .section = "other",
     .help = "test a program that speaks the protocol of long-lived handlers",
     .more =
         "Plays the worker's part of the protocol pipe 1 with the program, one process "
         "for each case, and prints in words what the program does wrong, with the "
         "end of its standard error. Needs no Redis. The program has handlers for a few "
         "types of job, such as echo and sleep, which docs/pipe.md lists; a case that "
         "needs a type which the program does not name in `ready` is skipped.\nExits "
         "with the code 1 if a case failed or the program does not become ready, 64 "
         "after wrong usage, 126 if the program cannot be executed, 127 if it was not "
         "found.",
     .examples = "holdfast conform --list"},
    {.name = "wrong",
     .alike = "health|healthcheck|alerts|problems|verdict",
     .operands = "",
     .opts = hf_opts_wrong,
     .run = hf_cmd_wrong,
     .section = "other",
     .help = "say what is wrong now, why, and what helps",
     .more =
         "Looks at Redis, every queue and its oldest waiting job, the workers, the "
         "schedules and the locks, and judges them by the rules of docs/diagnose.md. "
         "Prints the worst first, then the oldest, at most 20. Notes may be deliberate, "
         "and are no wrong things. Writes nothing. Exits with 1 if something is bad, "
         "else with 0, so it serves as a check for cron.\nWith --json it prints one "
         "object for each: level (bad, warn, note, hint), rule, since_ms (null: not "
         "known), "
         "what, why, command, page. With --nagios it prints what a plugin of Nagios "
         "prints, and exits with 0 (well), 1 (warnings), 2 (something is bad) or 3 (it "
         "cannot judge).\nA Redis that does not answer for 3 seconds is a wrong thing "
         "itself. Checks the data as doctor does, for a second at most; for locks it "
         "looks through the keys of Redis, a second at most, too.",
     .examples = "holdfast wrong\n"
                 "holdfast wrong --late 5m --json\n"
                 "holdfast wrong --nagios"},
    {.name = "top",
     .alike = "htop|monitor|dashboard-tui|ui|tui|live",
     .operands = "",
     .opts = hf_opts_top,
     .run = hf_cmd_top,
     .bare = true,
     .section = "other",
     .help = "watch queues, jobs, workers and locks at a terminal",
     .more =
         "Shows what is wrong, with its why, above six pages: queues, running jobs, dead "
         "jobs by their error, workers, locks, types. The key ? lists all keys; the last "
         "line is the command that shows the chosen row. Changes nothing without "
         "--allow-changes. It asks Redis for at most 100 scripts a second, so with very "
         "many queues those that are not visible are read in turn. While Redis does not "
         "answer, the last data stays, and the first line says how old it is.\nNeeds a "
         "terminal of 60x12 at least, and the package holdfast-dashboard (69: it is not "
         "installed). NO_COLOR leaves out colours; nothing is told by them alone.",
     .examples = "holdfast top --once\n"
                 "holdfast top --once --page workers --late 5m"},
    {.name = "dashboard",
     .alike = "web|ui|webui|monitor|gui|serve",
     .operands = "",
     .opts = hf_opts_dashboard,
     .run = hf_cmd_dashboard,
     .bare = true,
     .section = "other",
     .help = "serve pages that show what is wrong, and an API of JSON",
     .more =
         "Starts the program of the package holdfast-dashboard; without it the command "
         "exits with 69. The pages are at http://127.0.0.1:8880/, the API is below "
         "/api/v1, and /metrics is for Prometheus. It shows one namespace of one Redis, "
         "and changes nothing unless --allow-changes is given. Reads Redis only while "
         "a viewer watches. TERM and INT end it; HUP reads the token file again.",
     .examples =
         "holdfast dashboard --listen unix:dashboard.sock\n"
         "holdfast dashboard --listen unix:dashboard.sock --host jobs.example.org"},
    {.name = "exporter",
     .alike = "prometheus|openmetrics|metrics-exporter",
     .operands = "",
     .opts = hf_opts_exporter,
     .run = hf_cmd_exporter,
     .bare = true,
     .section = "other",
     .help = "serve the figures of all queues to Prometheus",
     .more =
         "Serves only /metrics and /healthz, by the same program as dashboard. Redis is "
         "read when /metrics is.",
     .examples = "holdfast exporter --listen unix:exporter.sock"},
    {.name = "doctor",
     .alike = "diagnose|fsck|repair|ping",
     .core = 7,
     .operands = "",
     .opts = hf_opts_doctor,
     .run = hf_cmd_doctor,
     .section = "other",
     .help = "check the data in Redis, and repair it",
     .more = "Checks Redis itself, every queue and the workers, while all of them are in "
             "use. For each finding it prints what is wrong, what that means, and what "
             "it would repair or what to do by hand. Writes nothing without --fix; with "
             "it, repairs what is safe and reports the rest. Exits with 1 if there are "
             "findings, or some remain.",
     .examples = "holdfast doctor\n"
                 "holdfast doctor --queue mail --fix"},
    {.name = "script register",
     .operands = "",
     .opts = hf_opts_script,
     .run = hf_cmd_script_register,
     .bare = true,
     .section = "other",
     .help = "print the script that makes a queue known, for other languages",
     .more = "As script enqueue. A client runs it once for a queue, before it enqueues.",
     .examples = "holdfast script register >register.lua"},
    {.name = "script enqueue",
     .operands = "",
     .opts = hf_opts_script,
     .run = hf_cmd_script_enqueue,
     .bare = true,
     .section = "other",
     .help = "print the script that enqueues, for other languages",
     .more = "Prints exactly what Redis runs; the first lines explain KEYS and ARGV. "
             "With --json it adds the SHA1 and the arguments.",
     .examples = "holdfast script enqueue >enqueue.lua"},
    {.name = "script enqueue_with",
     .operands = "",
     .opts = hf_opts_script,
     .run = hf_cmd_script_enqueue_with,
     .bare = true,
     .section = "other",
     .help = "print the script that enqueues jobs with options",
     .more = "As script enqueue. The options are fields of the record, as \"priority\".",
     .examples = "holdfast script enqueue_with --sha1"},
    {.name = "demo",
     .core = 8,
     .operands = "",
     .opts = hf_opts_demo,
     .run = hf_cmd_demo,
     .bare = true,
     .section = "other",
     .help = "run 300 jobs, kill a worker, and check the promises",
     .more = "Starts its own Redis and three workers, kills one of them in the middle of "
             "ten jobs, and compares the notes of the jobs' programs with the promises. "
             "Draws when and where each job ran, as SVG, and prints the name of that "
             "file. Takes about 10 seconds, and leaves only the picture behind. "
             "With --dashboard, Redis and the pages stay until Control-C. Exits with 1 "
             "if a promise was not kept.",
     .examples = "holdfast demo --svg demo.svg"},
    {.name = "bench",
     .alike = "benchmark",
     .operands = "",
     .opts = hf_opts_bench,
     .run = hf_cmd_bench,
     .section = "other",
     .help = "measure the speed on this machine, beside a bare loop of the same scripts",
     .more = "Without --redis it starts its own Redis. With --redis it works in its own "
             "namespace, and removes its keys afterwards. Measures, one after the other: "
             "jobs enqueued and processed per second, how soon an idle worker starts a "
             "job, how late delayed jobs start, how soon a job of a killed worker starts "
             "elsewhere, and the memory of a job in Redis. Takes less than a minute. "
             "Other load on the machine changes the figures.",
     .examples = "holdfast bench --jobs 10000 -n 4"},
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
     .help = "print the version, and that of the OpenSSL inside or beside it",
     .examples = "holdfast version"},
    {.name = "help",
     .operands = "[COMMAND]",
     .max_operands = 2,
     .opts = hf_opts_help,
     .run = hf_cmd_help,
     .bare = true,
     .section = "other",
     .help = "print the list of commands, or the help of one",
     .examples = "holdfast help job list"},
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
