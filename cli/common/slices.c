/* slices.c - see slices.h. */
#include "cli/common/slices.h"

#include <stdio.h>

#include "base/base.h"
#include "cli/out.h"

static const int numbers[] = {SIGINT, SIGTERM};
static volatile sig_atomic_t caught;

static void on_signal(int number)
{
    caught = number;
}

void hf_slices_start(hf_slices *slices, const char *what)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    *slices = (hf_slices){.what = what};
    sigemptyset(&action.sa_mask);
    caught = 0;
    for (size_t i = 0; i < HF_COUNT(numbers); i++)
        (void)sigaction(numbers[i], &action, &slices->before[i]); /* they exist */
}

bool hf_slices_progress(size_t done, size_t total, void *arg)
{
    hf_slices *slices = arg;
    if (!slices->begun)
        hf_progress_start(&slices->bar, slices->what, total);
    slices->begun = true;
    hf_progress_show(&slices->bar, done, done);
    slices->cut = caught != 0;
    return !slices->cut;
}

void hf_slices_tell(const hf_cli *cli, const hf_slices_words *words, size_t n,
                    bool complete)
{
    if (cli->json)
        hf_out_json(stdout,
                    json_pack("{s:s, s:I, s:b}", "queue", words->queue, words->key,
                              (json_int_t)n, "complete", (int)complete));
    else
        printf("%s: %zu %s%s%s\n", words->queue, n, n == 1 ? words->one : words->many,
               n > 1 && words->pace != NULL ? words->pace : "",
               complete ? "" : ", then it was stopped");
}

static int let_go(hf_slices *slices)
{
    hf_progress_end(&slices->bar);
    for (size_t i = 0; i < HF_COUNT(numbers); i++)
        (void)sigaction(numbers[i], &slices->before[i], NULL);
    return caught == 0 ? HF_EXIT_OK : 128 + (int)caught;
}

int hf_slices_end(hf_slices *slices, const hf_cli *cli, const hf_slices_words *words,
                  hf_err err, size_t n)
{
    int code = let_go(slices);
    if (err == HF_OK || n > 0)
        hf_slices_tell(cli, words, n, err == HF_OK && !slices->cut);
    return err == HF_OK ? code : hf_cli_fail(cli, err, cli->detail);
}
