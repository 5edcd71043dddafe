/* open.c - see open.h. */
#include "cli/lock/open.h"

#include "base/mask.h"

int hf_cli_locks(const hf_cli *cli, hf_lock_client **out)
{
    char detail[HF_DETAIL_SIZE] = "";
    const hf_lock_client_opts opts = {
        HF_LOCK_CLIENT_OPTS_INIT, .server = &cli->server,
        .minder = "/proc/self/exe", /* the command is its own minder */
    };
    hf_err err = hf_lock_client_open(out, &opts, detail);
    return err == HF_OK ? HF_EXIT_OK : hf_cli_fail(cli, err, detail);
}

int hf_cli_check_lock(const hf_cli *cli, const char *what, const char *name)
{
    if (hf_lock_name_check(name) == HF_OK)
        return HF_EXIT_OK;
    return hf_cli_say(
        cli, HF_EXIT_DATA, "",
        "expected %s, 1 to %d characters of A-Z a-z 0-9 . _ : - with at most "
        "one / inside, found '%s'",
        what, HF_LOCK_NAME_MAX, HF_FOUND(name));
}
