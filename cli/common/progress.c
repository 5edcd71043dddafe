/* progress.c - see progress.h. */
#include "cli/common/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { BAR_WIDTH = 30, REDRAW_MS = 100 };

void hf_progress_start(hf_progress *progress, const char *what, uint64_t total)
{
    *progress =
        (hf_progress){.shown = isatty(STDERR_FILENO) == 1, .what = what, .total = total};
}

void hf_progress_show(hf_progress *progress, uint64_t done, uint64_t count)
{
    uint64_t now = hf_boot_ns();
    if (!progress->shown || now - progress->last_ns < REDRAW_MS * HF_MS_NS)
        return;
    progress->last_ns = now;
    progress->drawn = true;
    if (progress->total == 0) {
        fprintf(stderr, "\r%llu %s", (unsigned long long)count, progress->what);
        return;
    }
    char bar[BAR_WIDTH + 1];
    uint64_t part = done > progress->total ? progress->total : done;
    size_t full = (size_t)(part * BAR_WIDTH / progress->total);
    memset(bar, '#', full);
    memset(bar + full, '.', BAR_WIDTH - full);
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r[%s] %3u%%  %llu %s", bar,
            (unsigned)(part * 100 / progress->total), (unsigned long long)count,
            progress->what);
}

void hf_progress_end(hf_progress *progress)
{
    if (progress->drawn)
        fprintf(stderr, "\r%*s\r", BAR_WIDTH + 40, "");
    progress->drawn = false;
}
