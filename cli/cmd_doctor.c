/* cmd_doctor.c - `holdfast doctor`: does what is in Redis agree with itself, and is this
 * Redis one that jobs can be trusted to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/out.h"

typedef struct doctor {
    const hf_cli *cli;
    const char *queue; /* that is looked at now; NULL: Redis itself */
    size_t found;
} doctor;

static void tell(doctor *d, int invariant, const char *id, const char *text)
{
    d->found++;
    if (d->cli->json) {
        hf_out_json(stdout,
                    json_pack("{s:o, s:o, s:o, s:o}", "queue",
                              d->queue != NULL ? hf_out_text(d->queue) : json_null(),
                              "invariant",
                              invariant > 0 ? json_integer(invariant) : json_null(), "id",
                              hf_out_text(id), "text", hf_out_text(text)));
        return;
    }
    if (d->queue != NULL)
        printf("%s: I%d: %s: %s\n", d->queue, invariant, id, text);
    else
        printf("redis: %s: %s\n", id, text);
}

static void on_finding(int invariant, const char *id, const char *text, void *arg)
{
    tell(arg, invariant, id, text);
}

/* Worth knowing, but a choice that somebody may have made. */
static void note_persistence(const doctor *d, const hf_server_info *server)
{
    if (!server->aof && !server->rdb && !d->cli->json)
        puts("note: this Redis keeps neither an append-only file nor snapshots: when it "
             "ends, "
             "all jobs are gone");
}

static void look_at_server(doctor *d, const hf_server_info *server)
{
    d->queue = NULL;
    if (server->policy[0] != '\0' && strcmp(server->policy, "noeviction") != 0)
        tell(d, 0, server->policy,
             "the eviction policy must be noeviction: locks have an end, "
             "and would be evicted first");
    if (server->role[0] != '\0' && strcmp(server->role, "master") != 0)
        tell(d, 0, server->role, "this is a replica: jobs cannot be claimed here");
}

static hf_err look_at_queues(doctor *d, hf_admin *admin, const char *const *names,
                             size_t n)
{
    bool idle = hf_argv_has(d->cli->args, "idle");
    hf_err err = HF_OK;
    for (size_t i = 0; i < n && err == HF_OK; i++) {
        size_t found = 0;
        d->queue = names[i];
        err = hf_admin_audit(admin, names[i], idle, on_finding, d, &found);
    }
    return err;
}

static int examine(doctor *d, hf_admin *admin, const char *only)
{
    char **names = NULL;
    size_t n = 1;
    hf_err err = only != NULL ? HF_OK : hf_admin_queues(admin, &names, &n);
    if (err == HF_OK) {
        note_persistence(d, hf_admin_server(admin));
        look_at_server(d, hf_admin_server(admin));
    }
    if (err == HF_OK)
        err = look_at_queues(d, admin, only != NULL ? &only : (const char *const *)names,
                             n);
    free(names);
    if (err != HF_OK)
        return hf_cli_fail(d->cli, err, hf_admin_detail(admin));
    if (!d->cli->json)
        printf("%zu %s looked at, %zu %s\n", n, n == 1 ? "queue" : "queues", d->found,
               d->found == 1 ? "finding" : "findings");
    return d->found > 0 ? HF_EXIT_NO : HF_EXIT_OK;
}

int hf_cmd_doctor(hf_cli *cli)
{
    hf_admin *admin = NULL;
    doctor d = {.cli = cli};
    const char *only = hf_argv_text(cli->args, "queue");
    int code = only == NULL ? HF_EXIT_OK : hf_cli_check_name(cli, "a queue's name", only);
    if (code == HF_EXIT_OK)
        code = hf_cli_admin(cli, &admin);
    if (code == HF_EXIT_OK)
        code = examine(&d, admin, only);
    hf_admin_close(admin);
    return code;
}
