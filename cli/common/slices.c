/* slices.c - see slices.h. */
#include "cli/common/slices.h"

#include <stdio.h>

#include "cli/out.h"
#include "cli/stop.h"

void hf_slices_start(hf_slices *slices, const char *what)
{
    *slices = (hf_slices){.what = what};
    hf_stop_start();
}

bool hf_slices_progress(size_t done, size_t total, void *arg)
{
    hf_slices *slices = arg;
    if (!slices->begun)
        hf_progress_start(&slices->bar, slices->what, total);
    slices->begun = true;
    hf_progress_show(&slices->bar, done, done);
    slices->cut = hf_stop_asked() != 0;
    return !slices->cut;
}

void hf_slices_tell(const hf_cli *cli, const hf_slices_words *words, size_t n,
                    bool complete)
{
    if (cli->json)
        hf_out_json(stdout,
                    json_pack("{s:s?, s:I, s:b}", "queue", words->queue, words->key,
                              (json_int_t)n, "complete", (int)complete));
    else
        printf("%s%s%zu %s%s%s\n", words->queue != NULL ? words->queue : "",
               words->queue != NULL ? ": " : "", n, n == 1 ? words->one : words->many,
               n > 1 && words->pace != NULL ? words->pace : "",
               complete ? "" : ", then it was stopped");
}

int hf_slices_end(hf_slices *slices, const hf_cli *cli, const hf_slices_words *words,
                  hf_err err, size_t n)
{
    hf_progress_end(&slices->bar);
    hf_stop_end();
    if (err == HF_OK || n > 0)
        hf_slices_tell(cli, words, n, err == HF_OK && !slices->cut);
    return err == HF_OK ? hf_stop_code(HF_EXIT_OK) : hf_cli_fail(cli, err, cli->detail);
}
