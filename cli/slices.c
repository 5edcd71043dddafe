/* slices.c - see slices.h. */
#include "cli/slices.h"

#include "base/base.h"

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

int hf_slices_end(hf_slices *slices)
{
    hf_progress_end(&slices->bar);
    for (size_t i = 0; i < HF_COUNT(numbers); i++)
        (void)sigaction(numbers[i], &slices->before[i], NULL);
    return caught == 0 ? 0 : 128 + (int)caught;
}
