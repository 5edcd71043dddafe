/* worker.c - a worker whose handlers are C functions: worker [URL [burst]]. INT and TERM
 * end it after the jobs that run; with `burst` it ends when nothing is left. */
#define _POSIX_C_SOURCE 200809L /* sigaction(), also with -std=c11 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/worker.h>

static hf_worker *worker; /* A signal handler gets no argument of ours. */
static void on_signal(int number)
{
    (void)number;
    hf_worker_stop(worker);
}

/* Without it the worker prints nothing. */
static void on_log(hf_log_level level, const char *message, const hf_log_field *fields,
                   size_t n, void *arg)
{
    (void)arg;
    if (level < HF_LOG_INFO)
        return;
    fprintf(stderr, "worker: %s", message);
    for (size_t i = 0; i < n; i++) {
        const hf_log_field *field = hf_log_field_at(fields, i);
        if (field->text != NULL)
            fprintf(stderr, " %s=%s", field->key, field->text);
        else
            fprintf(stderr, " %s=%lld", field->key, (long long)field->number);
    }
    fputc('\n', stderr);
}

static hf_verdict send_email(hf_run *run, void *out)
{
    size_t len;
    const char *address = hf_run_payload(run, &len);
    if (memchr(address, '@', len) == NULL) {
        hf_run_set_error(run, "no address"); /* to try again would not help */
        return HF_VERDICT_DEAD;
    }
    fprintf(out, "%s: mail to %.*s\n", hf_run_id(run), (int)len, address);
    return HF_VERDICT_DONE;
}

static hf_verdict make_report(hf_run *run, void *out)
{
    size_t len, words = 0;
    char result[48];
    const char *text = hf_run_payload(run, &len);
    for (size_t i = 0; i < len && !hf_run_stopping(run); i++)
        words += text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
    if (hf_run_stopping(run)) /* its lock is lost, or the worker is being stopped */
        return HF_VERDICT_RETRY;
    fprintf(out, "%s: report of %zu words\n", hf_run_id(run), words);
    snprintf(result, sizeof result, "{\"words\":%zu}", words);
    return hf_run_set_result_json(run, result) == HF_OK ? HF_VERDICT_DONE
                                                        : HF_VERDICT_RETRY;
}

int main(int argc, char **argv)
{
    const hf_worker_queue queue = {HF_WORKER_QUEUE_INIT, .name = "default"};
    const char *url = argc > 1 ? argv[1] : getenv("REDIS_URL");
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .server = HF_SERVER(.url = url),
                           .queues = &queue, .n_queues = 1, .log = on_log};
    opts.burst = argc > 2;
    char detail[HF_DETAIL_SIZE] = "";
    hf_err err = hf_worker_new(&worker, &opts, detail);
    if (err == HF_OK)
        err = hf_worker_handle(worker, "email.send", 30000, send_email, stdout, detail);
    if (err == HF_OK)
        err = hf_worker_handle(worker, "report.make", 60000, make_report, stdout, detail);
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (err == HF_OK)
        err = hf_worker_run(worker, detail); /* until it is stopped */
    if (err != HF_OK)
        fprintf(stderr, "worker: %s: %s\n", hf_err_text(err), detail);
    hf_worker_free(worker);
    return err == HF_OK ? 0 : 1;
}
