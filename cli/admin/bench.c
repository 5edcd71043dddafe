/* bench.c - `holdfast bench`: its figures as a table, or as one JSON object. */
#include <stdio.h>
#include <unistd.h>

#include "base/parent.h"
#include "bench/bench.h"
#include "cli/cli.h"

enum { JOBS = 100000, PAYLOAD_BYTES = 100, CONCURRENCY = 16, TEXT_SIZE = 48 };

static void on_part(const char *what, void *arg)
{
    (void)arg;
    fprintf(stderr, "holdfast: measuring: %s\n", what);
}

/* ---- the table ---- */

static void row(const char *what, const char *ours, const char *bare, const char *ratio,
                const char *bulk)
{
    printf("%-28s %15s", what, ours);
    if (*bare != '\0')
        printf(" %15s %6s", bare, ratio);
    if (*bulk != '\0')
        printf(" %15s", bulk);
    printf("\n");
}

/* 123456 as "123,456": such figures are read, not copied. */
static void grouped(char out[TEXT_SIZE], double value)
{
    char digits[TEXT_SIZE];
    int n = snprintf(digits, sizeof digits, "%.0f", value), at = 0;
    for (int i = 0; i < n && at + 2 < TEXT_SIZE; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

static void rate_row(const char *what, double ours, double bare, double ratio,
                     double bulk)
{
    char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE], d[TEXT_SIZE];
    grouped(a, ours);
    grouped(b, bare);
    snprintf(c, sizeof c, "%.2f", ratio);
    grouped(d, bulk);
    row(what, a, b, c, d);
}

static void spread_row(const char *what, int decimals, hf_spread ours,
                       const hf_spread *bare)
{
    char a[TEXT_SIZE], b[TEXT_SIZE] = "", c[TEXT_SIZE] = "";
    snprintf(a, sizeof a, "%.*f / %.*f", decimals, ours.p50, decimals, ours.p99);
    if (bare != NULL) {
        snprintf(b, sizeof b, "%.*f / %.*f", decimals, bare->p50, decimals, bare->p99);
        snprintf(c, sizeof c, "%.2f", bare->p50 > 0 ? ours.p50 / bare->p50 : 0);
    }
    row(what, a, b, c, "");
}

static void print_table(const hf_bench_opts *opts, const hf_bench_result *r)
{
    char bytes[TEXT_SIZE];
    printf("Redis %s%s; %u jobs of %u bytes; concurrency %u\n\n", r->server.version,
           opts->url == NULL ? ", private, on a unix socket" : "", (unsigned)opts->jobs,
           (unsigned)opts->payload_bytes, (unsigned)opts->concurrency);
    row("", "holdfast", "bare loop", "ratio", "bare, in bulk");
    rate_row("enqueue, jobs/s", r->enqueue_per_s, r->bare_enqueue_per_s, r->enqueue_ratio,
             r->bulk_enqueue_per_s);
    rate_row("process, jobs/s", r->process_per_s, r->bare_process_per_s, r->process_ratio,
             r->bulk_process_per_s);
    spread_row("pick-up, us (p50 / p99)", 0, r->pickup_us, &r->bare_pickup_us);
    spread_row("lateness, ms (p50 / p99)", 2, r->lateness_ms, NULL);
    spread_row("recovery, ms (p50 / p99)", 0, r->recovery_ms, NULL);
    grouped(bytes, r->bytes_per_job);
    row("memory, bytes per job", bytes, "", "", "");
    printf(
        "\nThe bare loop sends the same scripts over one blocking connection and does "
        "nothing else, 100\njobs at a time; in bulk: 10,000 enqueued, 1,000 claimed at a "
        "time. Recovery is from SIGKILL of\na worker to the start elsewhere, with leases "
        "of %u s.\n",
        (unsigned)(r->lease_ms / 1000));
}

static void print_json(const hf_bench_result *r)
{
    printf("{\"enqueue_per_s\": %.0f, \"process_per_s\": %.0f, \"bare_enqueue_per_s\": "
           "%.0f, "
           "\"bare_process_per_s\": %.0f, \"enqueue_ratio\": %.3f, \"process_ratio\": "
           "%.3f, ",
           r->enqueue_per_s, r->process_per_s, r->bare_enqueue_per_s,
           r->bare_process_per_s, r->enqueue_ratio, r->process_ratio);
    printf("\"pickup_us\": {\"p50\": %.1f, \"p99\": %.1f}, "
           "\"bare_pickup_us\": {\"p50\": %.1f, \"p99\": %.1f}, "
           "\"lateness_ms\": {\"p50\": %.3f, \"p99\": %.3f}, "
           "\"recovery_ms\": {\"p50\": %.1f, \"p99\": %.1f}, \"bytes_per_job\": %.0f}\n",
           r->pickup_us.p50, r->pickup_us.p99, r->bare_pickup_us.p50,
           r->bare_pickup_us.p99, r->lateness_ms.p50, r->lateness_ms.p99,
           r->recovery_ms.p50, r->recovery_ms.p99, r->bytes_per_job);
}

/* ---- the commands ---- */

int hf_cmd_bench(hf_cli *cli)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_bench_result result;
    hf_bench_opts opts = {
        .jobs = (uint32_t)hf_argv_number(cli->args, "jobs", JOBS),
        .payload_bytes = (uint32_t)hf_argv_number(cli->args, "payload", PAYLOAD_BYTES),
        .concurrency = (uint32_t)hf_argv_number(cli->args, "concurrency", CONCURRENCY),
        .on_part = isatty(STDERR_FILENO) ? on_part : NULL,
    };
    if (hf_argv_has(cli->args, "redis")) {
        opts.url = cli->server.url;
        opts.password_file = cli->server.password_file;
    }
    if ((uint64_t)opts.jobs * opts.payload_bytes > HF_BENCH_BYTES_MAX)
        return hf_cli_say(
            cli, HF_EXIT_USAGE, "",
            "--jobs and --payload: expected at most %lld bytes of payload in all",
            (long long)HF_BENCH_BYTES_MAX);
    hf_heed_children();
    hf_err err = hf_bench_run(&opts, &result, detail);
    if (err == HF_CANCEL)
        return 128 + result.signal;
    if (err != HF_OK)
        return hf_cli_fail(cli, err, detail);
    if (cli->json)
        print_json(&result);
    else
        print_table(&opts, &result);
    return HF_EXIT_OK;
}

int hf_cmd_bench_victim(hf_cli *cli)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_heed_children();
    hf_err err = hf_bench_victim(detail);
    return err == HF_OK ? HF_EXIT_OK : hf_cli_fail(cli, err, detail);
}
