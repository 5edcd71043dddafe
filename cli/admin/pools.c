/* pools.c - see pools.h. */
#include "cli/admin/pools.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/out.h"

static const char *const figures[] = {"workers", "down", "processes", "slots", "running"};

static json_int_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static void add(json_t *object, const char *name, json_int_t n)
{
    (void)json_object_set_new(object, name, json_integer(number(object, name) + n));
}

/* NULL: out of memory. */
static json_t *entry_of(json_t *pools, const char *name)
{
    json_t *entry;
    size_t i;
    json_array_foreach(pools, i, entry)
    {
        const char *known = json_string_value(json_object_get(entry, "name"));
        if (known != NULL && strcmp(known, name) == 0)
            return entry;
    }
    entry = json_pack("{s:o}", "name", hf_out_text(name));
    for (i = 0; i < HF_COUNT(figures); i++)
        add(entry, figures[i], 0);
    return json_array_append_new(pools, entry) == 0 ? entry : NULL;
}

static void add_pool(json_t *pools, const hf_worker_pool_info *pool)
{
    json_t *entry = entry_of(pools, pool->name);
    add(entry, "workers", 1);
    add(entry, "down", strcmp(pool->state, "down") == 0);
    add(entry, "processes", pool->processes);
    add(entry, "slots", pool->slots);
    add(entry, "running", pool->running);
}

static json_t *list_of(json_t *all, const char *queue)
{
    json_t *pools = json_object_get(all, queue);
    if (pools == NULL && json_object_set_new(all, queue, json_array()) == 0)
        pools = json_object_get(all, queue);
    return pools;
}

static void on_worker(const hf_worker_info *worker, void *arg)
{
    for (size_t i = 0; !worker->silent && i < worker->n_queues; i++)
        for (size_t k = 0; k < worker->n_pools; k++)
            add_pool(list_of(arg, worker->queues[i]), &worker->pools[k]);
}

int hf_pools_read(const hf_cli *cli, hf_admin *admin, json_t **out)
{
    *out = json_object();
    hf_err err = hf_admin_workers(admin, on_worker, *out, cli->detail);
    return err == HF_OK ? HF_EXIT_OK : hf_cli_fail(cli, err, cli->detail);
}

json_t *hf_pools_of(const json_t *all, const char *queue)
{
    return json_object_get(all, queue);
}

void hf_pools_print(const json_t *pools)
{
    const json_t *entry;
    size_t i;
    json_array_foreach(pools, i, entry)
    {
        json_int_t workers = number(entry, "workers"), down = number(entry, "down");
        printf("  %-9s ", i == 0 ? "pools" : "");
        hf_out_plain(stdout, json_string_value(json_object_get(entry, "name")));
        printf(": processes %" JSON_INTEGER_FORMAT "  slots %" JSON_INTEGER_FORMAT
               "  running %" JSON_INTEGER_FORMAT,
               number(entry, "processes"), number(entry, "slots"),
               number(entry, "running"));
        if (down > 0)
            printf("  down on %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT
                   " workers",
                   down, workers);
        putchar('\n');
    }
}
