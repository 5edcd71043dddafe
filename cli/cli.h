/* cli.h - what every command gets: its arguments, the configuration, where Redis is, and
 * one way to say what went wrong. */
#ifndef HF_CLI_CLI_H
#define HF_CLI_CLI_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/args.h"
#include "cli/exit.h"
#include "cli/writer.h"
#include "config/config.h"
#include "holdfast/admin.h"
#include "holdfast/producer.h"

typedef struct hf_cli {
    const hf_argv *args; /* borrowed */
    hf_config *config;   /* owned; NULL for a command that is `bare` */
    /* Flags > environment > file > default; its text is borrowed. Without a password_file
     * where the URL has a password of its own. */
    hf_server_opts server;
    bool json;
    hf_writer
        *writer;  /* borrowed; of standard error while nothing may wait for it, or NULL */
    char *detail; /* HF_DETAIL_SIZE bytes: why the last call of an hf_admin failed */
} hf_cli;

/* Reads the configuration and puts the options over it. HF_EXIT_OK, or it has been said.
 */
int hf_cli_setup(hf_cli *cli, const hf_argv *args);
void hf_cli_done(hf_cli *cli);

/* Takes where Redis is from cli->config, and puts the options over it: for a
 * configuration that is read again. HF_EXIT_OK, or it has been said. */
int hf_cli_put_over(hf_cli *cli);

/* Says on one line of standard error (with --json: as an object) what went wrong, and
 * returns what the command ends with. The hint says what to do about it: below the line
 * at a terminal, in the object with --json; "": none, or for wrong usage the help of the
 * command. The first takes code, words and hint from the answer, and `detail` may be ""
 * or NULL. */
int hf_cli_fail(const hf_cli *cli, hf_err err, const char *detail);
int hf_cli_say(const hf_cli *cli, hf_exit code, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* One or more whole lines on standard error. With a writer it waits only a moment, for
 * the order of what this process and its child print. */
void hf_cli_print(const hf_cli *cli, const char *lines);
void hf_cli_print_json(const hf_cli *cli, json_t *object); /* takes the object */

/* A line of standard error that is no failure; with --json an object. */
void hf_cli_warn(const hf_cli *cli, const char *text);

/* HF_EXIT_OK if it is a name, or NULL (it was not given); else it is said. `what`: "a
 * queue's name". */
int hf_cli_check_name(const hf_cli *cli, const char *what, const char *name);

/* --queue, or "default"; NULL when it is no name, and that has been said. */
const char *hf_cli_queue(const hf_cli *cli);

/* The options of Redis for a producer; text is borrowed from the cli. */
void hf_cli_fill_producer(const hf_cli *cli, hf_producer_opts *out);

/* Connects. HF_EXIT_OK, or it has been said. */
int hf_cli_admin(const hf_cli *cli, hf_admin **out);

/* The commands, each in the file of its first word. */
int hf_cmd_enqueue(hf_cli *cli);
int hf_cmd_worker(hf_cli *cli);
int hf_cmd_queue_list(hf_cli *cli);
int hf_cmd_queue_show(hf_cli *cli);
int hf_cmd_queue_pause(hf_cli *cli);
int hf_cmd_queue_resume(hf_cli *cli);
int hf_cmd_queue_limit(hf_cli *cli);
int hf_cmd_queue_purge(hf_cli *cli);
int hf_cmd_queue_remove(hf_cli *cli);
int hf_cmd_queue_shards(hf_cli *cli);
int hf_cmd_stats(hf_cli *cli);
int hf_cmd_runs(hf_cli *cli);
int hf_cmd_job_show(hf_cli *cli);
int hf_cmd_job_list(hf_cli *cli);
int hf_cmd_job_why(hf_cli *cli);
int hf_cmd_job_result(hf_cli *cli);
int hf_cmd_job_logs(hf_cli *cli);
int hf_cmd_job_retry(hf_cli *cli);
int hf_cmd_job_edit(hf_cli *cli);
int hf_cmd_job_cancel(hf_cli *cli);
int hf_cmd_job_delete(hf_cli *cli);
int hf_cmd_dead_list(hf_cli *cli);
int hf_cmd_dead_retry(hf_cli *cli);
int hf_cmd_dead_purge(hf_cli *cli);
int hf_cmd_workers(hf_cli *cli);
int hf_cmd_cron_list(hf_cli *cli);
int hf_cmd_cron_show(hf_cli *cli);
int hf_cmd_cron_add(hf_cli *cli);
int hf_cmd_cron_remove(hf_cli *cli);
int hf_cmd_cron_pause(hf_cli *cli);
int hf_cmd_cron_resume(hf_cli *cli);
int hf_cmd_cron_run(hf_cli *cli);
int hf_cmd_cron_next(hf_cli *cli);
int hf_cmd_lock(hf_cli *cli);
int hf_cmd_locks_list(hf_cli *cli);
int hf_cmd_locks_show(hf_cli *cli);
int hf_cmd_locks_release(hf_cli *cli);
int hf_cmd_locks_revoke(hf_cli *cli);
int hf_cmd_locks_fence_check(hf_cli *cli);
int hf_cmd_script_register(hf_cli *cli);
int hf_cmd_script_enqueue(hf_cli *cli);
int hf_cmd_script_enqueue_with(hf_cli *cli);
int hf_cmd_check(hf_cli *cli);
int hf_cmd_conform(hf_cli *cli);
int hf_cmd_doctor(hf_cli *cli);
int hf_cmd_wrong(hf_cli *cli);
int hf_cmd_top(hf_cli *cli);
int hf_cmd_dashboard(hf_cli *cli);
int hf_cmd_exporter(hf_cli *cli);
int hf_cmd_demo(hf_cli *cli);
int hf_cmd_bench(hf_cli *cli);
int hf_cmd_bench_victim(hf_cli *cli);
int hf_cmd_complete(hf_cli *cli);
int hf_cmd_version(hf_cli *cli);
int hf_cmd_help(hf_cli *cli);

#endif
