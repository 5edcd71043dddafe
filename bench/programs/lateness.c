/* lateness.c - how late delayed jobs start, while many others wait in the same queue, and
 * how late a thread is that only sleeps until each of the same times.
 *
 *     lateness --url unix:///... [--waiting N] [--jobs N] [--span MS]
 *              [--how evenly|random|bursts] */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/parts.h"

typedef struct late {
    hf_late_plan plan;
    hf_late_seen ours, bare;
} late;

static hf_err measure(hf_bench *b, void *arg)
{
    late *l = arg;
    return hf_bench_late(b, &l->plan, &l->ours, &l->bare);
}

static bool parse_how(const char *word, hf_late_how *how)
{
    if (strcmp(word, "evenly") == 0)
        *how = HF_LATE_EVENLY;
    else if (strcmp(word, "bursts") == 0)
        *how = HF_LATE_BURSTS;
    else
        *how = HF_LATE_AT_RANDOM;
    return *how != HF_LATE_AT_RANDOM || strcmp(word, "random") == 0;
}

static bool parse(int argc, char **argv, hf_bench_opts *opts, hf_late_plan *plan)
{
    static const struct option names[] = {
        {"url", required_argument, NULL, 'u'},  {"waiting", required_argument, NULL, 'w'},
        {"jobs", required_argument, NULL, 'j'}, {"span", required_argument, NULL, 's'},
        {"how", required_argument, NULL, 'h'},  {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (c == 'u')
            opts->url = optarg;
        else if (c == 'w')
            plan->waiting = strtoul(optarg, NULL, 10);
        else if (c == 'j')
            plan->jobs = strtoul(optarg, NULL, 10);
        else if (c == 's')
            plan->span_ms = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c != 'h' || !parse_how(optarg, &plan->how))
            return false;
    }
    return opts->url != NULL && plan->jobs > 0 && plan->span_ms > 0 && optind == argc;
}

static void print(const char *name, const hf_late_seen *seen, const char *end)
{
    printf("\"%s\": {\"p50\": %.3f, \"p99\": %.3f, \"least\": %.3f, \"most\": %.3f, "
           "\"early\": %zu}%s",
           name, seen->ms.p50, seen->ms.p99, seen->least_ms, seen->most_ms, seen->early,
           end);
}

int main(int argc, char **argv)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_bench_opts opts = {.payload_bytes = 100};
    hf_bench_result result;
    late l = {
        .plan = {
            .waiting = 1000000, .jobs = 10000, .span_ms = 10000, .how = HF_LATE_EVENLY}};
    if (!parse(argc, argv, &opts, &l.plan)) {
        fprintf(stderr,
                "lateness: expected --url URL and the options of the file's head\n");
        return 64;
    }
    hf_err err = hf_bench_with(&opts, &result, measure, &l, detail);
    if (err != HF_OK) {
        fprintf(stderr, "lateness: %s\n", detail);
        return 1;
    }
    printf("{");
    print("ours_ms", &l.ours, ", ");
    print("bare_ms", &l.bare, "}\n");
    return 0;
}
