/* tool.c - see tool.h. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include "bench/programs/tool.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

_Noreturn void give_up(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(1);
}

void must(hf_err err, const char *what, const char *why)
{
    if (err != HF_OK)
        give_up(what, why == NULL || why[0] == '\0' ? hf_err_text(err) : why);
}

_Noreturn void misused(const char *expected)
{
    (void)fprintf(stderr, "%s: expected %s\n", program_invocation_short_name, expected);
    exit(64);
}

int read_options(int argc, char **argv, const option_spec *specs)
{
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        const option_spec *s = specs;
        while (s->name != NULL && strcmp(s->name, argv[i] + 2) != 0)
            s++;
        if (s->name == NULL || i + 1 == argc)
            misused("the options of the file's head");
        if (s->text != NULL)
            *s->text = argv[i + 1];
        else
            *s->number = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    }
    return i;
}

/* ---- requests ---- */

void put_word(hf_buf *out, const char *word)
{
    hf_buf_printf(out, "$%zu\r\n", strlen(word));
    hf_buf_text(out, word);
    hf_buf_text(out, "\r\n");
}

void make_request(hf_buf *out, size_t bytes_max, const char *const *words, size_t n)
{
    hf_buf_init(out, bytes_max);
    hf_buf_printf(out, "*%zu\r\n", n);
    for (size_t i = 0; i < n; i++)
        put_word(out, words[i]);
    must(hf_buf_err(out), "a request", NULL);
}

redisReply *take_reply(hf_probe *probe, const char *what)
{
    void *got = NULL;
    (void)redisGetReply(probe->redis, &got);
    redisReply *reply = got;
    must(hf_probe_check(probe, &reply), what, probe->detail);
    return reply;
}

void load_script(hf_probe *probe, const char *script, char sha1[SHA1_SIZE])
{
    redisReply *reply = redisCommand(probe->redis, "SCRIPT LOAD %s", script);
    must(hf_probe_check(probe, &reply), "a script", probe->detail);
    (void)snprintf(sha1, SHA1_SIZE, "%s", reply->str);
    freeReplyObject(reply);
}

/* ---- rounds ---- */

static double in_scripts_ms(hf_probe *probe)
{
    double ms;
    must(hf_probe_scripts(probe, &ms), "INFO", probe->detail);
    return ms;
}

static cost one_round(hf_probe *probe, void (*side)(void *arg), void *arg)
{
    double before_ms = in_scripts_ms(probe);
    uint64_t since_ns = hf_boot_ns();
    side(arg);
    double ms = (double)(hf_boot_ns() - since_ns) / 1e6;
    return (cost){ms, in_scripts_ms(probe) - before_ms};
}

void compare_rounds(hf_probe *probe, size_t rounds, void (*ours)(void *arg),
                    void (*bare)(void *arg), void *arg, cost medians[2])
{
    double ms[2][COMPARE_MAX], redis_ms[2][COMPARE_MAX];
    void (*const sides[2])(void *) = {ours, bare};
    for (size_t side = 0; side < 2; side++) /* Redis and the allocator warm up */
        (void)one_round(probe, sides[side], arg);
    for (size_t i = 0; i < rounds; i++)
        for (size_t side = 0; side < 2; side++) {
            cost found = one_round(probe, sides[side], arg);
            ms[side][i] = found.ms;
            redis_ms[side][i] = found.redis_ms;
        }
    for (size_t side = 0; side < 2; side++)
        medians[side] = (cost){hf_bench_median(ms[side], rounds),
                               hf_bench_median(redis_ms[side], rounds)};
}
