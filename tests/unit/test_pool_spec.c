/* test_pool_spec.c - a pool as it was configured: what is refused, its defaults, its
 * copy, and which options of a type take precedence. */
#include "worker/pool_spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cores.h"
#include "worker/worker.h"

static char detail[HF_DETAIL_SIZE];
static const char *const python[] = {"/usr/bin/python3", "worker.py", NULL};

static hf_pool_spec *made(hf_pool pool)
{
    hf_pool_spec *spec = NULL;
    pool.size = sizeof pool;
    if (pool.argv == NULL)
        pool.argv = python;
    assert_int_equal(hf_pool_spec_new(&spec, &pool, detail), HF_OK);
    return spec;
}

static void refuse(hf_pool pool, const char *why)
{
    hf_pool_spec *spec = NULL;
    pool.size = sizeof pool;
    if (pool.argv == NULL)
        pool.argv = python;
    detail[0] = '\0';
    assert_int_equal(hf_pool_spec_new(&spec, &pool, detail), HF_INVALID);
    assert_null(spec);
    if (strstr(detail, why) == NULL)
        fail_msg("'%s' has no '%s'", detail, why);
    assert_int_equal(hf_pool_spec_new(&spec, &pool, NULL), HF_INVALID);
}

#define REFUSE(why, ...) refuse((hf_pool){__VA_ARGS__}, why)

static hf_pool_type type_of(const char *type)
{
    return (hf_pool_type){HF_POOL_TYPE_INIT, .type = type};
}

static void without_a_program_others_join(void **state)
{
    static const char *const none[] = {NULL};
    char path[] = "join.sock";
    (void)state;
    hf_pool_spec *spec = made((hf_pool){.argv = none, .listen = path});
    path[0] = 'x';
    assert_string_equal(spec->pool.listen, "join.sock");
    assert_string_equal(spec->name, "those that join");
    hf_pool_spec *other = made((hf_pool){.argv = none, .listen = path});
    assert_false(hf_pool_spec_same_program(spec, other));
    hf_pool_spec_unref(other);
    hf_pool_spec_unref(spec);
}

static void zero_means_the_defaults(void **state)
{
    (void)state;
    uint32_t cores = hf_cores();
    hf_pool_spec *spec = made((hf_pool){0});
    assert_int_equal(spec->pool.processes, cores < 256 ? cores : 256);
    assert_int_equal(spec->pool.parallel, 0);
    assert_int_equal(spec->pool.start_timeout_ms, 30000);
    assert_int_equal(spec->pool.grace_ms, 5000);
    assert_int_equal(spec->pool.idle_ms, 600000);
    assert_int_equal(spec->pool.max_jobs, 0);
    assert_string_equal(spec->name, "python3 worker.py");
    hf_pool_spec_unref(spec);
    spec = made((hf_pool){.processes = 256,
                          .parallel = 1024,
                          .idle_ms = HF_IDLE_NEVER,
                          .grace_ms = 1,
                          .start_timeout_ms = 2});
    assert_int_equal(spec->pool.processes, 256);
    assert_int_equal(spec->pool.parallel, 1024);
    assert_int_equal(spec->pool.idle_ms, HF_IDLE_NEVER);
    assert_int_equal(spec->pool.grace_ms, 1);
    assert_int_equal(spec->pool.start_timeout_ms, 2);
    hf_pool_spec_unref(spec);
}

static void everything_is_copied(void **state)
{
    char program[] = "a", env_name[] = "A", dir[] = "/d", type[] = "t", dead[] = "d";
    const char *argv[] = {program, NULL}, *env[] = {env_name, NULL};
    hf_pool_type types[] = {type_of(type)};
    (void)state;
    types[0].on_dead = dead;
    hf_pool_spec *spec = made((hf_pool){.argv = argv,
                                        .env = env,
                                        .cwd = dir,
                                        .types = types,
                                        .n_types = 1,
                                        .on_dead = dead});
    program[0] = env_name[0] = dir[1] = type[0] = dead[0] = 'x';
    argv[0] = env[0] = NULL;
    types[0].type = NULL;
    assert_string_equal(spec->pool.argv[0], "a");
    assert_string_equal(spec->pool.env[0], "A");
    assert_string_equal(spec->pool.cwd, "/d");
    assert_string_equal(spec->pool.on_dead, "d");
    assert_string_equal(hf_pool_spec_type(spec, "t")->on_dead, "d");
    assert_null(hf_pool_spec_type(spec, "u"));
    assert_ptr_equal(hf_pool_spec_ref(spec), spec);
    hf_pool_spec_unref(spec);
    hf_pool_spec_unref(spec);
    hf_pool_spec_unref(NULL);
}

static void what_is_out_of_its_range_is_refused(void **state)
{
    static const char *const none[] = {NULL}, *const empty[] = {"", NULL};
    static const char *const with_value[] = {"A=b", NULL}, *const names[] = {"A", NULL};
    (void)state;
    REFUSE("an argv with a program", .argv = none);
    REFUSE("an argv with a program", .argv = empty);
    REFUSE("an argv with a program", .argv = empty, .listen = "a");
    REFUSE("a listen that is not empty", .listen = "");
    REFUSE("1 to 256 processes of a pool, found 257", .processes = 257);
    REFUSE("a parallel of 1 to 1024, found 1025", .parallel = 1025);
    REFUSE("max_jobs below", .max_jobs = UINT64_MAX);
    REFUSE("max_age_ms", .max_age_ms = -1);
    REFUSE("max_rss", .max_rss = -1);
    REFUSE("idle_ms", .idle_ms = -2);
    REFUSE("keep_ms", .keep_ms = -2);
    REFUSE("keep_ms", .keep_ms = HF_DELAY_MAX_MS + 1);
    REFUSE("on_dead", .on_dead = "a b");
    REFUSE("a cwd", .cwd = "");
    REFUSE("names of variables in env, found A=b", .env = with_value);
    REFUSE("names of variables in env", .env = empty);
    REFUSE("either env or env_all, found both", .env = names, .env_all = true);
    REFUSE("at most 1000 types", .n_types = 1001);
    REFUSE("types", .n_types = 1);
}

static void a_types_options_are_checked(void **state)
{
    hf_pool_type types[] = {type_of("a"), type_of("b")};
    (void)state;
    types[1].type = "a";
    REFUSE("each type of a pool once, found a", .types = types, .n_types = 2);
    types[1].type = "*";
    REFUSE("as type of a pool a name", .types = types, .n_types = 2);
    types[1].type = NULL;
    REFUSE("as type of a pool a name", .types = types, .n_types = 2);
    types[1] = type_of("b");
    types[1].keep_ms = -2;
    REFUSE("keep_ms", .types = types, .n_types = 2);
    types[1] = type_of("b");
    types[1].on_dead = "";
    REFUSE("on_dead", .types = types, .n_types = 2);
    types[1].size = 0;
    REFUSE("hf_pool_type 1", .types = types, .n_types = 2);
    types[0].size = 0;
    REFUSE("begin with HF_POOL_TYPE_INIT", .types = types, .n_types = 2);
}

/* A caller of an earlier release: the struct was shorter. */
static void shorter_types_are_read_by_their_size(void **state)
{
    struct {
        size_t size;
        const char *type;
        uint32_t timeout_ms, max_attempts;
    } old[] = {{sizeof old[0], "a", 7, 1}, {sizeof old[0], "b", 8, 2}};
    (void)state;
    hf_pool_spec *spec =
        made((hf_pool){.types = (const hf_pool_type *)(const void *)old, .n_types = 2});
    assert_int_equal(hf_pool_spec_type(spec, "b")->timeout_ms, 8);
    assert_int_equal(hf_pool_spec_type(spec, "b")->keep_ms, 0);
    hf_pool_spec_unref(spec);
}

static void the_pools_own_options_come_last(void **state)
{
    hf_pool_type types[] = {type_of("a")}, said = type_of("b");
    (void)state;
    types[0].timeout_ms = 1;
    types[0].keep_ms = 3;
    hf_pool_spec *spec = made((hf_pool){.types = types,
                                        .n_types = 1,
                                        .timeout_ms = 100,
                                        .max_attempts = 200,
                                        .keep_ms = 300,
                                        .on_dead = "pool"});
    hf_pool_type got = hf_pool_spec_options(spec, &said);
    assert_string_equal(got.type, "b");
    assert_int_equal(got.timeout_ms, 100);
    assert_int_equal(got.max_attempts, 200);
    assert_int_equal(got.keep_ms, 300);
    assert_string_equal(got.on_dead, "pool");
    said = (hf_pool_type){HF_POOL_TYPE_INIT,       .type = "b",
                          .timeout_ms = 10,        .max_attempts = 20,
                          .keep_ms = HF_KEEP_NONE, .on_dead = "said"};
    got = hf_pool_spec_options(spec, &said);
    assert_int_equal(got.timeout_ms, 10);
    assert_int_equal(got.max_attempts, 20);
    assert_int_equal(got.keep_ms, HF_KEEP_NONE);
    assert_string_equal(got.on_dead, "said");
    hf_pool_spec_unref(spec);
}

/* The operator's word, whatever the program says. Each option for itself. */
static void the_types_of_the_pool_come_first(void **state)
{
    hf_pool_type types[] = {type_of("a")};
    const hf_pool_type said = {HF_POOL_TYPE_INIT,  .type = "a",   .timeout_ms = 10,
                               .max_attempts = 20, .keep_ms = 30, .on_dead = "said"};
    (void)state;
    types[0].timeout_ms = HF_TIMEOUT_NONE;
    types[0].keep_ms = 3;
    hf_pool_spec *spec = made((hf_pool){.types = types, .n_types = 1, .timeout_ms = 100});
    hf_pool_type got = hf_pool_spec_options(spec, &said);
    assert_int_equal(got.timeout_ms, 0);
    assert_int_equal(got.max_attempts, 20);
    assert_int_equal(got.keep_ms, 3);
    assert_string_equal(got.on_dead, "said");
    hf_pool_spec_unref(spec);
    types[0] = type_of("a");
    types[0].max_attempts = 2;
    types[0].on_dead = "types";
    spec = made((hf_pool){.types = types, .n_types = 1});
    got = hf_pool_spec_options(spec, &said);
    assert_int_equal(got.timeout_ms, 10);
    assert_int_equal(got.max_attempts, 2);
    assert_int_equal(got.keep_ms, 30);
    assert_string_equal(got.on_dead, "types");
    hf_pool_spec_unref(spec);
}

/* Whether a pool with these settings counts as the plain one. */
static bool same(hf_pool other)
{
    hf_pool_spec *a = made((hf_pool){0}), *b = made(other);
    bool is_same = hf_pool_spec_same(a, b) && hf_pool_spec_same(b, a);
    hf_pool_spec_unref(a);
    hf_pool_spec_unref(b);
    return is_same;
}

#define SAME(...) same((hf_pool){__VA_ARGS__})

static void each_difference_is_seen(void **state)
{
    static const char *const argv[] = {"python3", "other.py", NULL};
    static const char *const names[] = {"A", NULL};
    const hf_pool_type types[] = {type_of("a")};
    (void)state;
    assert_true(SAME(0));
    assert_true(SAME(.idle_ms = 600000, .grace_ms = 5000, .start_timeout_ms = 30000));
    assert_false(SAME(.argv = argv));
    assert_false(SAME(.env = names));
    assert_false(SAME(.env_all = true));
    assert_false(SAME(.cwd = "/"));
    assert_false(SAME(.processes = 200));
    assert_false(SAME(.parallel = 2));
    assert_false(SAME(.start_timeout_ms = 1));
    assert_false(SAME(.grace_ms = 1));
    assert_false(SAME(.max_jobs = 1));
    assert_false(SAME(.max_age_ms = 1));
    assert_false(SAME(.max_rss = 1));
    assert_false(SAME(.idle_ms = 1));
    assert_false(SAME(.types = types, .n_types = 1));
    assert_false(SAME(.timeout_ms = 1));
    assert_false(SAME(.max_attempts = 1));
    assert_false(SAME(.keep_ms = 1));
    assert_false(SAME(.on_dead = "d"));
    assert_false(SAME(.logs = true));
}

/* The worker's, then what the program says, then what the file says of the type. */
static void each_part_of_a_wait_has_its_own_order(void **state)
{
    const hf_backoff rest = {HF_SHAPE_EXPONENTIAL, 2000, 3600000, 0.2};
    hf_pool_type said = type_of("a"), file[] = {type_of("a"), type_of("b")};
    (void)state;
    said.has_backoff = true;
    said.backoff = HF_BACKOFF_LINEAR;
    said.backoff_base_ms = 5000;
    file[0].backoff_base_ms = 100;
    file[0].backoff_jitter = HF_JITTER_NONE;
    hf_pool_spec *spec = made((hf_pool){.types = file, .n_types = 2});
    hf_backoff got = hf_pool_spec_backoff(spec, &said, &rest);
    assert_int_equal(got.shape, HF_SHAPE_LINEAR);
    assert_int_equal(got.base_ms, 100);
    assert_int_equal(got.cap_ms, 3600000);
    assert_true(got.jitter == 0);
    said.type = "b";
    assert_int_equal(hf_pool_spec_backoff(spec, &said, &rest).base_ms, 5000);
    said.backoff_cap_ms = 6000;
    assert_int_equal(hf_pool_spec_backoff(spec, &said, &rest).cap_ms, 6000);
    hf_pool_spec_unref(spec);
    /* Where they contradict each other, what was named later counts. */
    file[1].backoff_base_ms = 60000;
    spec = made((hf_pool){.types = file, .n_types = 2});
    got = hf_pool_spec_backoff(spec, &said, &rest);
    assert_int_equal(got.base_ms, 60000);
    assert_int_equal(got.cap_ms, 60000);
    hf_pool_spec_unref(spec);
    file[1].backoff_base_ms = 0;
    file[1].backoff_cap_ms = 1000;
    spec = made((hf_pool){.types = file, .n_types = 2});
    got = hf_pool_spec_backoff(spec, &said, &rest);
    assert_int_equal(got.base_ms, 1000);
    assert_int_equal(got.cap_ms, 1000);
    hf_pool_spec_unref(spec);
}

static void a_changed_wait_is_a_difference(void **state)
{
    hf_pool_type was = type_of("a"), now = type_of("a");
    (void)state;
    now.backoff_jitter = HF_JITTER_NONE;
    hf_pool_spec *one = made((hf_pool){.types = &was, .n_types = 1});
    hf_pool_spec *two = made((hf_pool){.types = &now, .n_types = 1});
    assert_false(hf_pool_spec_same(one, two));
    hf_pool_spec_unref(one);
    hf_pool_spec_unref(two);
    now.backoff_jitter = 1.5;
    REFUSE("a jitter of at most 1", .types = &now, .n_types = 1);
    now.backoff_jitter = 0;
    now.backoff_base_ms = 10;
    now.backoff_cap_ms = 9;
    REFUSE("a backoff_cap_ms not below backoff_base_ms", .types = &now, .n_types = 1);
}

static void the_order_of_types_is_no_difference(void **state)
{
    const hf_pool_type ab[] = {type_of("a"), type_of("b")};
    const hf_pool_type ba[] = {type_of("b"), type_of("a")};
    hf_pool_type bc[] = {type_of("b"), type_of("c")};
    (void)state;
    hf_pool_spec *one = made((hf_pool){.types = ab, .n_types = 2});
    hf_pool_spec *two = made((hf_pool){.types = ba, .n_types = 2});
    hf_pool_spec *three = made((hf_pool){.types = bc, .n_types = 2});
    assert_true(hf_pool_spec_same(one, two));
    assert_false(hf_pool_spec_same(one, three));
    assert_true(hf_pool_spec_same_program(one, three));
    hf_pool_spec *list[] = {one, three};
    assert_ptr_equal(hf_pool_specs_with(list, 2, "c"), three);
    assert_null(hf_pool_specs_with(list, 2, "d"));
    assert_int_equal(hf_pool_specs_fit(list, 1, three, detail), HF_INVALID);
    assert_non_null(strstr(detail, "'b' in the pools"));
    hf_pool_spec_unref(one);
    hf_pool_spec_unref(two);
    hf_pool_spec_unref(three);
}

static void a_name_is_short_and_hides_a_login(void **state)
{
    static const char *const argv[] = {
        "/opt/app/bin/node", "--title=\tx", "redis://me:secret@host/1",
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", NULL};
    (void)state;
    hf_pool_spec *spec = made((hf_pool){.argv = argv});
    assert_non_null(strstr(spec->name, "node --title= x "));
    assert_null(strstr(spec->name, "secret"));
    assert_true(strlen(spec->name) < HF_POOL_NAME_SIZE);
    hf_pool_spec_unref(spec);
}

/* ---- of a worker ---- */

static hf_verdict done(hf_run *run, void *arg)
{
    (void)run;
    (void)arg;
    return HF_VERDICT_DONE;
}

static hf_worker *worker_of_default(void)
{
    hf_worker *worker = NULL;
    const hf_worker_queue queues[] = {{HF_WORKER_QUEUE_INIT, .name = "default"}};
    assert_int_equal(hf_worker_new(&worker,
                                   &(hf_worker_opts){HF_WORKER_OPTS_INIT,
                                                     .queues = queues, .n_queues = 1},
                                   detail),
                     HF_OK);
    return worker;
}

static void a_worker_takes_pools(void **state)
{
    hf_worker *worker = worker_of_default();
    const hf_pool_type types[] = {type_of("a")};
    const hf_pool pool = {HF_POOL_INIT, .argv = python, .types = types, .n_types = 1};
    const hf_pool plain = {HF_POOL_INIT, .argv = python};
    const hf_program program = {HF_PROGRAM_INIT, .type = "a", .argv = python};
    (void)state;
    assert_int_equal(hf_worker_pool(worker, &(hf_pool){.argv = python}, detail),
                     HF_INVALID);
    assert_non_null(strstr(detail, "HF_POOL_INIT"));
    assert_false(worker->has_programs);
    assert_int_equal(hf_worker_pool(worker, &pool, detail), HF_OK);
    assert_true(worker->has_programs);
    assert_true(worker->only_programs);
    assert_int_equal(hf_worker_pool(worker, &pool, detail), HF_INVALID);
    assert_non_null(strstr(detail, "found 'a' in the pools 'python3 worker.py' and"));
    assert_int_equal(hf_worker_handle(worker, "a", 0, done, NULL, detail), HF_INVALID);
    assert_non_null(
        strstr(detail, "found 'a' with a handler of its own and in the pool"));
    assert_int_equal(hf_worker_handle_program(worker, &program, detail), HF_INVALID);
    assert_int_equal(worker->n_handlers, 0);
    assert_int_equal(hf_worker_handle(worker, "b", 0, done, NULL, detail), HF_OK);
    assert_false(worker->only_programs);
    for (size_t i = 1; i < HF_POOLS_MAX; i++)
        assert_int_equal(hf_worker_pool(worker, &plain, detail), HF_OK);
    assert_int_equal(hf_worker_pool(worker, &plain, detail), HF_INVALID);
    assert_string_equal(detail, "expected at most 64 pools");
    hf_worker_free(worker);
}

static void a_handlers_type_is_not_a_pools(void **state)
{
    hf_worker *worker = worker_of_default();
    const hf_pool_type types[] = {type_of("a"), type_of("b")};
    const hf_pool pool = {HF_POOL_INIT, .argv = python, .types = types, .n_types = 2};
    (void)state;
    assert_int_equal(hf_worker_handle(worker, "*", 0, done, NULL, detail), HF_OK);
    assert_int_equal(hf_worker_handle(worker, "b", 0, done, NULL, detail), HF_OK);
    assert_int_equal(hf_worker_pool(worker, &pool, detail), HF_INVALID);
    assert_non_null(strstr(detail, "'b' with a handler of its own"));
    assert_int_equal(worker->n_pools, 0);
    hf_worker_free(worker);
}

static void a_reload_checks_pools(void **state)
{
    hf_worker *worker = worker_of_default();
    hf_pool_type types[] = {type_of("a")};
    const hf_worker_queue queues[] = {{HF_WORKER_QUEUE_INIT, .name = "default"}};
    const hf_worker_opts opts = {HF_WORKER_OPTS_INIT, .queues = queues, .n_queues = 1};
    const hf_program program = {HF_PROGRAM_INIT, .type = "a", .argv = python};
    hf_pool pools[HF_POOLS_MAX + 1];
    (void)state;
    for (size_t i = 0; i <= HF_POOLS_MAX; i++)
        pools[i] = (hf_pool){HF_POOL_INIT, .argv = python};
    assert_int_equal(hf_worker_reload(worker, &opts, NULL, 0, NULL, 0, detail),
                     HF_INVALID);
    assert_string_equal(detail, "expected a handler, found none");
    assert_int_equal(
        hf_worker_reload(worker, &opts, NULL, 0, pools, HF_POOLS_MAX + 1, detail),
        HF_INVALID);
    assert_string_equal(detail, "expected at most 64 pools, found 65");
    pools[1].types = types;
    pools[1].n_types = 1;
    assert_int_equal(hf_worker_reload(worker, &opts, &program, 1, pools, 2, detail),
                     HF_INVALID);
    assert_non_null(strstr(detail, "'a' with a handler of its own"));
    pools[0].types = types;
    pools[0].n_types = 1;
    assert_int_equal(hf_worker_reload(worker, &opts, NULL, 0, pools, 2, detail),
                     HF_INVALID);
    assert_non_null(strstr(detail, "'a' in the pools"));
    assert_int_equal(hf_worker_handle(worker, "a", 0, done, NULL, detail), HF_OK);
    assert_int_equal(hf_worker_reload(worker, &opts, NULL, 0, pools, 1, detail),
                     HF_INVALID);
    assert_non_null(strstr(detail, "'a' with a handler of its own"));
    types[0].type = "b";
    assert_int_equal(hf_worker_reload(worker, &opts, NULL, 0, pools, 1, detail), HF_OK);
    hf_worker_free(worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_means_the_defaults),
        cmocka_unit_test(without_a_program_others_join),
        cmocka_unit_test(everything_is_copied),
        cmocka_unit_test(what_is_out_of_its_range_is_refused),
        cmocka_unit_test(a_types_options_are_checked),
        cmocka_unit_test(shorter_types_are_read_by_their_size),
        cmocka_unit_test(the_pools_own_options_come_last),
        cmocka_unit_test(the_types_of_the_pool_come_first),
        cmocka_unit_test(each_difference_is_seen),
        cmocka_unit_test(each_part_of_a_wait_has_its_own_order),
        cmocka_unit_test(a_changed_wait_is_a_difference),
        cmocka_unit_test(the_order_of_types_is_no_difference),
        cmocka_unit_test(a_name_is_short_and_hides_a_login),
        cmocka_unit_test(a_worker_takes_pools),
        cmocka_unit_test(a_handlers_type_is_not_a_pools),
        cmocka_unit_test(a_reload_checks_pools),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
