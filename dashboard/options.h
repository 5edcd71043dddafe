/* options.h - the options of `holdfast dashboard` and `holdfast exporter`. */
#ifndef HF_DASHBOARD_OPTIONS_H
#define HF_DASHBOARD_OPTIONS_H

#include "base/listen.h"
#include "cli/cli.h"

enum { HF_DASH_BASE = 128 };

/* All text is borrowed from the command line. */
typedef struct hf_dash_opts {
    hf_listen listen;
    char base[HF_DASH_BASE]; /* "" or "/a/b" */
    const char **hosts;      /* owned: n_hosts names */
    size_t n_hosts;
    const char *token_file, *group, *user_header; /* each may be NULL */
    int64_t late_ms;
    bool allow_changes, hide_payloads, metrics_only;
} hf_dash_opts;

/* HF_EXIT_OK, or what is wrong has been said. In any case end it. */
int hf_dash_opts_read(hf_dash_opts *out, const hf_cli *cli);
void hf_dash_opts_done(hf_dash_opts *opts);

#endif
