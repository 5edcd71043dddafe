/* parts.c - chosen parts of `holdfast bench` as one line of JSON.
 *
 *     parts --url unix:///... [--bare-url redis://...] [--parts
 * rates,pickup,lateness,recovery] [--jobs N]
 *           [--payload BYTES] [--concurrency N] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "bench/programs/tool.h"

static const struct {
    const char *name;
    unsigned part;
} part_names[] = {
    {"rates", HF_BENCH_RATES},
    {"pickup", HF_BENCH_PICKUP},
    {"lateness", HF_BENCH_LATENESS},
    {"recovery", HF_BENCH_RECOVERY},
};

/* The parts of a list with commas; 0: one of them is unknown. */
static unsigned parse_parts(const char *list)
{
    unsigned parts = 0;
    while (*list != '\0') {
        size_t len = strcspn(list, ","), i = 0;
        while (i < HF_COUNT(part_names) && (strlen(part_names[i].name) != len ||
                                            memcmp(part_names[i].name, list, len) != 0))
            i++;
        if (i == HF_COUNT(part_names))
            return 0;
        parts |= part_names[i].part;
        list += len + (list[len] == ',' ? 1 : 0);
    }
    return parts;
}

static void parse(int argc, char **argv, hf_bench_opts *opts)
{
    const char *parts = NULL;
    const option_spec specs[] = {{"url", &opts->url, NULL},
                                 {"bare-url", &opts->bare_url, NULL},
                                 {"parts", &parts, NULL},
                                 {"jobs", NULL, &opts->jobs},
                                 {"payload", NULL, &opts->payload_bytes},
                                 {"concurrency", NULL, &opts->concurrency},
                                 {0}};
    bool all = read_options(argc, argv, specs) == argc;
    if (parts != NULL)
        opts->parts = parse_parts(parts);
    if (!all || (parts != NULL && opts->parts == 0) || opts->url == NULL ||
        opts->jobs == 0 || opts->concurrency == 0)
        misused("--url URL and the options of the file's head");
}

static void print_spread(const char *name, hf_spread spread)
{
    printf(", \"%s\": {\"p50\": %.3f, \"p99\": %.3f}", name, spread.p50, spread.p99);
}

static void print(const hf_bench_result *r)
{
    printf("{\"enqueue_per_s\": %.0f, \"process_per_s\": %.0f, "
           "\"bare_enqueue_per_s\": %.0f, \"bare_process_per_s\": %.0f, "
           "\"bulk_enqueue_per_s\": %.0f, \"bulk_process_per_s\": %.0f, "
           "\"bytes_per_job\": %.1f",
           r->enqueue_per_s, r->process_per_s, r->bare_enqueue_per_s,
           r->bare_process_per_s, r->bulk_enqueue_per_s, r->bulk_process_per_s,
           r->bytes_per_job);
    print_spread("pickup_us", r->pickup_us);
    print_spread("alike_pickup_us", r->alike_pickup_us);
    print_spread("bare_pickup_us", r->bare_pickup_us);
    print_spread("lateness_ms", r->lateness_ms);
    print_spread("recovery_ms", r->recovery_ms);
    printf("}\n");
}

int main(int argc, char **argv)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_bench_opts opts = {.jobs = 100000, .payload_bytes = 100, .concurrency = 16};
    hf_bench_result result;
    parse(argc, argv, &opts);
    hf_err err = hf_bench_run(&opts, &result, detail);
    must(err, "the bench", detail);
    print(&result);
    return 0;
}
