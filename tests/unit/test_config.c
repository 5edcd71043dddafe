/* The configuration file: those of config/good.txt are read as they stand, those of
 * config/bad.txt are refused with the message below them, and the reference in docs is
 * that of the table. */
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/schema.h"
#include "tests/support/eventually.h"
#include "tests/support/markdown.h"
#include "tests/support/tempdir.h"

enum { PATH_SIZE = 512, BAD_SIZE = 2048, DOCUMENT_SIZE = 1 << 18 };

#define FOLDER HF_TEST_SOURCE "/tests/unit/config"

static char dir[HF_TEMPDIR_SIZE]; /* of the file that is loaded */

static void write_file(const char *name, const char *text, char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s/%s.yaml", dir, name);
    hf_write_file(path, text);
}

/* A section of the good ones. */
static hf_config *load_good(const char *name)
{
    char path[PATH_SIZE], detail[HF_CONFIG_DETAIL_SIZE] = "";
    hf_config *config = NULL;
    char *text = hf_section_read(FOLDER "/good.txt", name);
    write_file(name, text, path);
    free(text);
    hf_err err = hf_config_load(&config, path, detail);
    if (err != HF_OK)
        fail_msg("%s", detail);
    assert_string_equal(config->file, path);
    return config;
}

static void assert_presets(const hf_config *config)
{
    hf_server_opts server = {HF_SERVER_OPTS_INIT};
    hf_config_fill_server(config, &server);
    assert_null(server.tls); /* certificates are verified */
    assert_string_equal(config->redis_url, "redis://localhost:6379/0");
    assert_null(config->password_file);
    assert_int_equal(config->connect_timeout_ms, 5000);
    assert_int_equal(config->request_timeout_ms, 1000);
    assert_string_equal(config->ns, "hf");
    assert_int_equal(config->worker.concurrency, 16);
    assert_int_equal(config->worker.lease_ms, 10000);
    assert_int_equal(config->worker.kill_grace_ms, 1000);
    assert_int_equal(config->worker.shutdown_timeout_ms, 25000);
    assert_int_equal(config->worker.strict, 0);
    assert_int_equal(config->n_queues, 0);
    assert_int_equal(config->worker.max_attempts, 20);
    assert_int_equal(config->worker.backoff, HF_BACKOFF_EXPONENTIAL);
    assert_int_equal(config->worker.backoff_base_ms, 2000);
    assert_int_equal(config->worker.backoff_cap_ms, 3600000);
    assert_true(config->worker.backoff_jitter == 0.2);
    assert_int_equal(config->worker.poison, 3);
    assert_int_equal(config->worker.dead_max, 10000);
    assert_int_equal(config->worker.dead_age_ms, INT64_C(180) * 86400000);
    assert_int_equal(config->payload_max, HF_PAYLOAD_DEFAULT);
    assert_int_equal(config->n_handlers, 0);
    assert_int_equal(config->log_level, HF_LOG_INFO);
    assert_int_equal(config->log_format, HF_FORMAT_LOGFMT);
    assert_null(config->metrics_listen);
}

static void without_a_file_or_with_an_empty_one_everything_is_the_default(void **state)
{
    (void)state;
    char detail[HF_CONFIG_DETAIL_SIZE];
    hf_config *config = NULL;
    assert_int_equal(hf_config_load(&config, NULL, detail), HF_OK);
    assert_null(config->file);
    assert_presets(config);
    hf_config_free(config);
    config = load_good("empty");
    assert_presets(config);
    hf_config_free(config);
    config = load_good("only_remarks");
    assert_presets(config);
    hf_config_free(config);
    hf_config_free(NULL);
}

static void every_key_is_read(void **state)
{
    (void)state;
    hf_config *config = load_good("whole");
    assert_string_equal(config->redis_url, "rediss://cache.example:6380/3");
    assert_string_equal(config->password_file, "/etc/holdfast/password");
    assert_int_equal(config->connect_timeout_ms, 2000);
    assert_int_equal(config->request_timeout_ms, 1500);
    assert_string_equal(config->ns, "shop");
    assert_int_equal(config->worker.concurrency, 32);
    assert_int_equal(config->worker.lease_ms, 30000);
    assert_int_equal(config->worker.kill_grace_ms, 2000);
    assert_int_equal(config->worker.shutdown_timeout_ms, 60000);
    assert_int_equal(config->worker.strict, 1);
    assert_int_equal(config->worker.max_attempts, 5);
    assert_int_equal(config->worker.backoff, HF_BACKOFF_LINEAR);
    assert_int_equal(config->worker.backoff_base_ms, 500);
    assert_int_equal(config->worker.backoff_cap_ms, 7200000);
    assert_true(config->worker.backoff_jitter == 0.5);
    assert_int_equal(config->worker.poison, 4);
    assert_int_equal(config->worker.dead_max, 500);
    assert_int_equal(config->worker.dead_age_ms, INT64_C(30) * 86400000);
    assert_int_equal(config->payload_max, 65536);
    assert_string_equal(config->tracing_endpoint, "https://collector.example:4318/otlp");
    assert_string_equal(config->tracing_headers_file, "/etc/holdfast/otlp");
    assert_true(config->tracing_sample == 0.25);
    assert_int_equal(config->tracing_link, HF_TRACE_LINK);
    assert_int_equal(config->tracing_compression, HF_COMPRESSION_GZIP);
    assert_int_equal(config->log_level, HF_LOG_WARN);
    assert_int_equal(config->log_format, HF_FORMAT_JSON);
    assert_string_equal(config->metrics_listen, "127.0.0.1:9464");
    hf_config_free(config);
}

static void sentinels_become_a_url(void **state)
{
    (void)state;
    hf_config *config = load_good("sentinel");
    hf_server_opts server = {HF_SERVER_OPTS_INIT};
    hf_config_fill_server(config, &server);
    assert_string_equal(server.url, "rediss+sentinel://joe:s%2Fx@sentinel-1.example,"
                                    "10.0.0.2:26380,[::1]:26381/mymaster/2");
    assert_string_equal(server.sentinel->user, "watcher");
    assert_string_equal(server.sentinel->password_file, "/etc/holdfast/sentinel");
    hf_config_free(config);
}

static void nodes_of_a_cluster_become_a_url(void **state)
{
    (void)state;
    hf_config *config = load_good("cluster");
    hf_server_opts server = {HF_SERVER_OPTS_INIT};
    hf_config_fill_server(config, &server);
    assert_string_equal(
        server.url,
        "rediss+cluster://joe:s%2Fx@redis-1.example,10.0.0.2:7000,[::1]:7001");
    hf_config_free(config);
}

static void queues_have_their_weights_and_limits(void **state)
{
    (void)state;
    hf_config *config = load_good("whole");
    hf_worker_queue queue;
    assert_int_equal(config->n_queues, 3);
    hf_config_fill_queue(&config->queues[0], &queue);
    assert_string_equal(queue.name, "critical");
    assert_int_equal(queue.weight, 6);
    assert_false(queue.has_limits);
    hf_config_fill_queue(&config->queues[1], &queue);
    assert_string_equal(queue.name, "default");
    assert_int_equal(queue.weight, 1);
    assert_true(queue.has_limits);
    assert_int_equal(queue.max_running, 50);
    assert_int_equal(queue.rate_limit, 100);
    assert_int_equal(queue.rate_per_ms, 2000);
    assert_int_equal(queue.keep_ms, 3600000);
    assert_int_equal(queue.keep_max, 500);
    assert_int_equal(queue.keep_bytes, 1 << 20);
    assert_string_equal(queue.on_dead, "job.died");
    assert_int_equal(queue.shards, 0);
    hf_config_fill_queue(&config->queues[2], &queue);
    assert_int_equal(queue.shards, 8);
    assert_null(queue.on_dead);
    hf_config_free(config);
}

static void handlers_have_their_programs(void **state)
{
    (void)state;
    hf_config *config = load_good("whole");
    hf_program program;
    assert_int_equal(config->n_handlers, 2);
    hf_config_fill_program(&config->handlers[0], &program);
    assert_string_equal(program.type, "email.send");
    assert_string_equal(program.argv[0], "/usr/local/bin/send-email");
    assert_string_equal(program.argv[1], "--quiet");
    assert_string_equal(program.argv[2], "");
    assert_null(program.argv[3]);
    assert_string_equal(program.env[0], "SMTP_HOST");
    assert_string_equal(program.env[1], "_X1");
    assert_null(program.env[2]);
    assert_string_equal(program.cwd, "/var/empty");
    assert_int_equal(program.timeout_ms, 30000);
    assert_int_equal(program.grace_ms, 10000);
    assert_int_equal(program.max_attempts, 3);
    assert_true(program.keep_ms == HF_KEEP_NONE);
    assert_string_equal(program.on_dead, "email.died");
    hf_config_fill_program(&config->handlers[1], &program);
    assert_string_equal(program.type, "*");
    assert_string_equal(program.argv[0], "/bin/cat");
    assert_null(program.env);
    assert_null(program.cwd);
    assert_int_equal(program.timeout_ms, 0);
    assert_int_equal(program.grace_ms, 5000);
    assert_int_equal(program.max_attempts, 0);
    assert_int_equal(program.keep_ms, 0);
    assert_null(program.on_dead);
    hf_config_free(config);
}

static void pools_have_their_settings(void **state)
{
    (void)state;
    hf_config *config = load_good("pools");
    hf_program program;
    hf_pool pool;
    assert_int_equal(config->n_handlers, 4);
    hf_config_fill_pool(&config->handlers[0], &pool);
    assert_int_equal(pool.size, sizeof pool);
    assert_string_equal(pool.argv[2], "app.worker");
    assert_null(pool.argv[3]);
    assert_int_equal(pool.processes, 4);
    assert_int_equal(pool.parallel, 16);
    assert_int_equal(pool.start_timeout_ms, 60000);
    assert_int_equal(pool.grace_ms, 10000);
    assert_int_equal(pool.max_jobs, 1000);
    assert_int_equal(pool.max_age_ms, 86400000);
    assert_int_equal(pool.max_rss, 300 << 20);
    assert_int_equal(pool.idle_ms, HF_IDLE_NEVER);
    assert_true(pool.env_all);
    assert_null(pool.env);
    assert_string_equal(pool.cwd, "/srv/app");
    assert_true(pool.logs);
    assert_int_equal(pool.timeout_ms, 120000);
    assert_int_equal(pool.max_attempts, 3);
    assert_int_equal(pool.keep_ms, 3600000);
    assert_string_equal(pool.on_dead, "job.died");
    hf_config_fill_pool(&config->handlers[1], &pool);
    assert_int_equal(pool.processes, 0);
    assert_int_equal(pool.parallel, 0);
    assert_int_equal(pool.start_timeout_ms, 30000);
    assert_int_equal(pool.grace_ms, 5000);
    assert_int_equal(pool.idle_ms, 600000);
    assert_int_equal(pool.max_jobs + (uint64_t)pool.max_age_ms + (uint64_t)pool.max_rss,
                     0);
    assert_false(pool.env_all);
    assert_string_equal(pool.env[0], "all");
    assert_string_equal(pool.env[1], "TOKEN");
    assert_int_equal(pool.keep_ms, 0);
    assert_int_equal(pool.n_types, 0);
    hf_config_fill_program(&config->handlers[3], &program);
    assert_string_equal(program.type, "legacy");
    assert_true(program.env_all);
    assert_null(program.env);
    hf_config_free(config);
}

/* A zero that is named is not one that is missing. */
static void types_of_pools_have_their_options(void **state)
{
    (void)state;
    hf_config *config = load_good("pools");
    hf_pool pool;
    hf_config_fill_pool(&config->handlers[0], &pool);
    assert_int_equal(pool.n_types, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pool.types[i].size, sizeof *pool.types);
    assert_string_equal(pool.types[0].type, "email.send");
    assert_int_equal(pool.types[0].timeout_ms, HF_TIMEOUT_NONE);
    assert_int_equal(pool.types[0].max_attempts, 9);
    assert_int_equal(pool.types[0].keep_ms, HF_KEEP_NONE);
    assert_string_equal(pool.types[0].on_dead, "email.died");
    assert_true(pool.types[0].has_backoff);
    assert_int_equal(pool.types[0].backoff, HF_BACKOFF_CONSTANT);
    assert_int_equal(pool.types[0].backoff_base_ms, 0);
    assert_true(pool.types[0].backoff_jitter == 0);
    assert_true(pool.types[1].has_backoff);
    assert_int_equal(pool.types[1].backoff, HF_BACKOFF_EXPONENTIAL);
    assert_int_equal(pool.types[1].backoff_base_ms, 60000);
    assert_int_equal(pool.types[1].backoff_cap_ms, 120000);
    assert_true(pool.types[1].backoff_jitter == HF_JITTER_NONE);
    assert_string_equal(pool.types[1].type, "report.make");
    assert_int_equal(pool.types[1].timeout_ms, 300000);
    assert_int_equal(pool.types[1].max_attempts, 0);
    assert_int_equal(pool.types[1].keep_ms, 86400000);
    assert_null(pool.types[1].on_dead);
    assert_string_equal(pool.types[2].type, "plain");
    assert_int_equal(pool.types[2].timeout_ms, 0);
    assert_int_equal(pool.types[2].keep_ms, 0);
    assert_false(pool.types[2].has_backoff);
    hf_config_free(config);
}

static void sixty_five_pools_are_too_many(void **state)
{
    (void)state;
    char detail[HF_CONFIG_DETAIL_SIZE], path[PATH_SIZE];
    char text[4096] = "handlers:\n";
    hf_config *config = NULL;
    for (size_t i = 0, at = strlen(text); i < HF_POOLS_MAX + 1; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "  - pool: [p%zu]\n", i);
    write_file("many", text, path);
    assert_int_equal(hf_config_load(&config, path, detail), HF_CONFIG);
    assert_non_null(strstr(detail, ":66:5: expected at most 64 pools, found more"));
}

static void schedules_have_the_options_of_their_jobs(void **state)
{
    (void)state;
    hf_config *config = load_good("whole");
    const hf_schedule *schedule = &config->schedules[0];
    assert_int_equal(config->n_schedules, 2);
    assert_int_equal(schedule->size, sizeof *schedule);
    assert_string_equal(schedule->id, "plain");
    assert_int_equal(schedule->priority, HF_PRIORITY_NORMAL);
    assert_int_equal(schedule->expired, HF_EXPIRED_DROP);
    assert_int_equal(schedule->max_attempts, 0);
    assert_int_equal(schedule->timeout_ms, 0);
    assert_int_equal(schedule->keep_ms, 0);
    assert_int_equal(schedule->start_within_ms, 0);
    assert_null(schedule->on_dead);
    schedule = &config->schedules[1];
    assert_string_equal(schedule->queue, "critical");
    assert_int_equal(schedule->priority, HF_PRIORITY_LOW);
    assert_int_equal(schedule->expired, HF_EXPIRED_DEAD);
    assert_int_equal(schedule->max_attempts, 7);
    assert_int_equal(schedule->timeout_ms, 90000);
    assert_int_equal(schedule->keep_ms, 3600000);
    assert_int_equal(schedule->start_within_ms, 600000);
    assert_string_equal(schedule->on_dead, "report.failed");
    hf_config_free(config);
}

static void options_are_filled_from_the_file(void **state)
{
    (void)state;
    hf_config *config = load_good("whole");
    hf_server_opts server = {HF_SERVER_OPTS_INIT};
    hf_worker_opts worker = {HF_WORKER_OPTS_INIT};
    hf_config_fill_server(config, &server);
    assert_string_equal(server.tls->ca, "/etc/holdfast/ca.pem");
    assert_string_equal(server.tls->cert, "/etc/holdfast/client.pem");
    assert_string_equal(server.tls->key, "/etc/holdfast/client.key");
    assert_string_equal(server.tls->server_name, "redis.internal");
    assert_true(server.tls->skip_verify);
    hf_config_fill_worker(config, &worker);
    assert_string_equal(server.url, config->redis_url);
    assert_string_equal(server.ns, "shop");
    assert_string_equal(server.password_file, "/etc/holdfast/password");
    assert_int_equal(server.connect_timeout_ms, 2000);
    assert_int_equal(server.request_timeout_ms, config->request_timeout_ms);
    assert_true(worker.strict);
    assert_int_equal(worker.shutdown_timeout_ms, 60000);
    assert_int_equal(worker.backoff, HF_BACKOFF_LINEAR);
    assert_int_equal(worker.dead_age_ms, config->worker.dead_age_ms);
    hf_config_free(config);
}

static void
a_zero_that_options_would_take_for_the_default_is_passed_on_as_zero(void **state)
{
    (void)state;
    hf_config *config = load_good("edges");
    hf_worker_opts worker = {HF_WORKER_OPTS_INIT};
    hf_config_fill_worker(config, &worker);
    assert_int_equal(worker.shutdown_timeout_ms, UINT32_MAX);
    assert_true(worker.backoff_jitter < 0);
    /* Above a quarter of the lease: that is for the worker to lower. */
    assert_int_equal(worker.kill_grace_ms, 900);
    assert_int_equal(worker.lease_ms, 1000);
    hf_config_free(config);
}

static void every_good_file_is_taken(void **state)
{
    (void)state;
    char *file = hf_md_read(FOLDER "/good.txt");
    hf_section section;
    size_t n = 0;
    for (const char *at = file; hf_section_next(&at, &section); n++)
        hf_config_free(load_good(section.name));
    free(file);
    assert_int_equal(n, 9);
}

/* True if a file is refused with this message, which the file's path begins. */
static bool is_refused(const char *name, const char *text, const char *message)
{
    char path[PATH_SIZE], wanted[2 * HF_CONFIG_DETAIL_SIZE];
    char detail[HF_CONFIG_DETAIL_SIZE] = "";
    hf_config *config = NULL;
    write_file(name, text, path);
    snprintf(wanted, sizeof wanted, "%s:%s", path, message);
    hf_err err = hf_config_load(&config, path, detail);
    bool is = err == HF_CONFIG && config == NULL && strcmp(detail, wanted) == 0;
    if (!is)
        print_error("%s: expected '%s', found %s '%s'\n", name, wanted, hf_err_name(err),
                    detail);
    hf_config_free(config);
    return is;
}

/* A section: the file, and the line of its message. */
static bool is_refused_as_written(const hf_section *section)
{
    char text[BAD_SIZE], *mark;
    assert_in_range(section->len, 1, sizeof text - 1);
    snprintf(text, sizeof text, "%.*s", (int)section->len, section->text);
    if ((mark = strstr(text, "\n=> ")) == NULL)
        fail_msg("%s: it has no line with its message", section->name);
    mark[1] = '\0';
    char *message = mark + strlen("\n=> ");
    message[strcspn(message, "\n")] = '\0';
    return is_refused(section->name, text, message);
}

static void every_bad_file_is_refused_with_the_message_below_it(void **state)
{
    (void)state;
    char *file = hf_md_read(FOLDER "/bad.txt");
    hf_section section;
    size_t n = 0, wrong = 0;
    for (const char *at = file; hf_section_next(&at, &section); n++)
        wrong += !is_refused_as_written(&section);
    free(file);
    print_message("%zu bad files\n", n);
    assert_true(n >= 126);
    assert_int_equal(wrong, 0);
}

static void bytes_of_no_text_and_endless_nesting_are_refused(void **state)
{
    (void)state;
    static char braces[200001];
    memset(braces, '{', sizeof braces - 1);
    assert_true(
        is_refused("braces", braces, "1:17: expected at most 16 levels, found more"));
    assert_true(is_refused(
        "utf8", "namespace: hf\npoison: \377\n",
        "2:9: expected YAML, found broken YAML (invalid leading UTF-8 octet)"));
}

static void a_missing_file_a_directory_and_a_huge_file_are_told(void **state)
{
    (void)state;
    char detail[HF_CONFIG_DETAIL_SIZE], path[PATH_SIZE];
    char wanted[HF_CONFIG_DETAIL_SIZE];
    hf_config *config = NULL;
    assert_int_equal(hf_config_load(&config, "/nowhere/holdfast.yaml", detail),
                     HF_CONFIG);
    assert_string_equal(detail,
                        "/nowhere/holdfast.yaml:1:1: expected a file that can be read, "
                        "found none (No such file or directory)");
    assert_int_equal(hf_config_load(&config, "/", detail), HF_CONFIG);
    assert_string_equal(detail, "/:1:1: expected a file that can be read, found none "
                                "(Is a directory)");
    char *huge = malloc(HF_CONFIG_FILE_MAX + 2);
    assert_non_null(huge);
    memset(huge, '#', HF_CONFIG_FILE_MAX + 1);
    huge[HF_CONFIG_FILE_MAX + 1] = '\0';
    write_file("huge", huge, path);
    free(huge);
    assert_int_equal(hf_config_load(&config, path, detail), HF_CONFIG);
    snprintf(wanted, sizeof wanted,
             "%s:1:1: expected a file of at most 1MiB, found a larger one", path);
    assert_string_equal(detail, wanted);
    assert_int_equal(hf_config_load(&config, "/dev/zero", detail), HF_CONFIG);
    assert_string_equal(
        detail, "/dev/zero:1:1: expected a file of at most 1MiB, found a larger one");
    assert_null(config);
}

static void sixty_five_queues_are_too_many(void **state)
{
    (void)state;
    char detail[HF_CONFIG_DETAIL_SIZE], path[PATH_SIZE];
    char text[4096] = "queues:\n";
    hf_config *config = NULL;
    for (size_t i = 0, at = strlen(text); i < HF_CONFIG_QUEUES_MAX + 1; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "  - name: q%zu\n", i);
    write_file("many", text, path);
    assert_int_equal(hf_config_load(&config, path, detail), HF_CONFIG);
    assert_non_null(strstr(detail,
                           ":2:3: expected a list of mappings, at most 64 entries, "
                           "found 65 entries"));
}

static void the_reference_in_the_documents_is_that_of_the_table(void **state)
{
    (void)state;
    char *reference = NULL;
    char *document = malloc(DOCUMENT_SIZE);
    assert_non_null(document);
    assert_int_equal(hf_config_reference(&reference), HF_OK);
    hf_read_file(HF_TEST_SOURCE "/docs/configure.md", document, DOCUMENT_SIZE);
    if (strstr(document, reference) == NULL)
        fail_msg("docs/configure.md lacks the table of keys: run ./dev generate");
    free(reference);
    free(document);
}

static void every_key_has_a_help_and_a_default_that_it_would_take_itself(void **state)
{
    (void)state;
    size_t n;
    const hf_key *keys = hf_schema(&n);
    for (size_t i = 0; i < n; i++) {
        assert_true(keys[i].help != NULL && keys[i].help[0] != '\0');
        assert_true(keys[i].min <= keys[i].max);
        bool mapping = keys[i].type == HF_KEY_MAPPING;
        assert_true(mapping || keys[i].preset != NULL || keys[i].unset != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_file_or_with_an_empty_one_everything_is_the_default),
        cmocka_unit_test(every_key_is_read),
        cmocka_unit_test(sentinels_become_a_url),
        cmocka_unit_test(nodes_of_a_cluster_become_a_url),
        cmocka_unit_test(queues_have_their_weights_and_limits),
        cmocka_unit_test(handlers_have_their_programs),
        cmocka_unit_test(pools_have_their_settings),
        cmocka_unit_test(types_of_pools_have_their_options),
        cmocka_unit_test(sixty_five_pools_are_too_many),
        cmocka_unit_test(schedules_have_the_options_of_their_jobs),
        cmocka_unit_test(options_are_filled_from_the_file),
        cmocka_unit_test(
            a_zero_that_options_would_take_for_the_default_is_passed_on_as_zero),
        cmocka_unit_test(every_good_file_is_taken),
        cmocka_unit_test(every_bad_file_is_refused_with_the_message_below_it),
        cmocka_unit_test(bytes_of_no_text_and_endless_nesting_are_refused),
        cmocka_unit_test(a_missing_file_a_directory_and_a_huge_file_are_told),
        cmocka_unit_test(sixty_five_queues_are_too_many),
        cmocka_unit_test(the_reference_in_the_documents_is_that_of_the_table),
        cmocka_unit_test(every_key_has_a_help_and_a_default_that_it_would_take_itself),
    };
    hf_tempdir_make(dir);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hf_tempdir_remove(dir);
    return failed;
}
