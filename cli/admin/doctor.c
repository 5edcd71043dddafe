/* doctor.c - `holdfast doctor`: checks whether the data in Redis is consistent, and
 * whether this Redis is safe for jobs. --fix first repairs what can be repaired safely,
 * then checks everything again. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/admin/doctor.h"
#include "cli/stop.h"

/* One repair may bring another thing to light: an id in two sets, then its lock. */
enum { REPAIRS_MAX = 5 };

static hf_err repair(hf_doctor *d)
{
    hf_err err = HF_OK;
    size_t before;
    int pass = 0;
    d->fix = true;
    do {
        before = d->repaired;
        err = hf_doctor_queues(d);
        if (err == HF_OK)
            err = hf_doctor_workers(d);
    } while (err == HF_OK && d->repaired > before && ++pass < REPAIRS_MAX &&
             hf_stop_asked() == 0);
    d->fix = false;
    return err;
}

static hf_err look(hf_doctor *d)
{
    hf_err err = hf_doctor_queues(d);
    if (err == HF_OK)
        err = hf_doctor_workers(d);
    return err == HF_OK ? hf_doctor_types(d) : err;
}

static void sum_up(const hf_doctor *d, bool fixed)
{
    printf("%zu %s looked at, ", d->n_queues, d->n_queues == 1 ? "queue" : "queues");
    if (fixed)
        printf("%zu repaired, ", d->repaired);
    printf("%zu %s%s", d->found, d->found == 1 ? "finding" : "findings",
           fixed ? " left" : "");
    if (d->repairable > 0)
        printf(", %zu of which `holdfast doctor --fix` repairs", d->repairable);
    puts(hf_stop_asked() != 0 ? ", then it was stopped" : "");
}

/* A Redis that refuses writes is looked at all the same. */
static bool refuses_writes(hf_err err)
{
    return err == HF_READONLY || err == HF_MISCONF || err == HF_OOM;
}

static int examine(hf_doctor *d)
{
    bool fix = hf_argv_has(d->cli->args, "fix");
    hf_stop_start();
    hf_err err = hf_doctor_server(d);
    if (err == HF_OK && fix)
        err = repair(d);
    if (refuses_writes(err)) {
        hf_doctor_note(d, "not all could be repaired: %s", d->cli->detail);
        err = HF_OK;
    }
    if (err == HF_OK)
        err = look(d);
    hf_stop_end();
    if (err != HF_OK) {
        hf_progress_end(&d->progress);
        return hf_cli_fail(d->cli, err, d->cli->detail);
    }
    if (!d->cli->json)
        sum_up(d, fix);
    return hf_stop_code(d->found > 0 ? HF_EXIT_NO : HF_EXIT_OK);
}

int hf_cmd_doctor(hf_cli *cli)
{
    hf_doctor d = {.cli = cli, .only = hf_argv_text(cli->args, "queue")};
    int code = hf_cli_check_name(cli, "a queue's name", d.only);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &d.admin);
    if (code == HF_EXIT_OK)
        code = examine(&d);
    free(d.holders);
    hf_admin_close(d.admin);
    return code;
}
