/* test_docs.c - the examples in the documents work as shown.
 *
 * All blocks of a document that are marked `sh` are run, in their order, by one shell. A
 * `text` block right after one shows what it prints. Ids, times and digests may differ. A
 * block marked `shell` is not run; the line above it says why, in a comment that readers
 * do not see: `<!-- not run: REASON -->`. Every `yaml` block is a good configuration.
 * At the end it prints which blocks were run and which were not. */
#include <glob.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/admin.h"
#include "tests/support/certs.h"
#include "tests/support/markdown.h"
#include "tests/support/proc.h"
#include "tests/support/redis_fixture.h"
#include "tests/support/skip.h"
#include "tests/support/tempdir.h"

#define MARK "@@ the block ends here @@"

enum { RUN_MS = 90000, TEXT_SIZE = 64 << 10, PATH_SIZE = 256, BLOCKS_MAX = 16 };

static hf_fixture redis;

/* ---- a place that looks like a clone in which ./dev has built ---- */

static void put_program(const char *name, const char *text)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/%s", redis.dir, name);
    hf_write_file(path, text);
    assert_int_equal(chmod(path, 0700), 0);
}

static void make_folder(const char *name)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/%s", redis.dir, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* What these start ends with the shell, and the shell with us, even if we crash. */
static void make_clone(void)
{
    make_folder("build");
    make_folder("build-tools");
    put_program("build/holdfast",
                "#!/bin/sh\nexec setpriv --pdeathsig KILL '" HF_TEST_COMMAND
                "' \"$@\"\n");
    put_program("build-tools/redis-server",
                "#!/bin/sh\n"
                "PATH=${PATH#*build-tools:}\n" /* without this one */
                "program=$(command -v redis-server) || {\n"
                "    program=$0.real\n"
                "    ln -sf \"$(command -v redis-check-rdb)\" \"$program\"\n"
                "}\n"
                "exec setpriv --pdeathsig KILL \"$program\" \"$@\"\n");
}

/* ---- running a document ---- */

typedef struct session {
    char *document; /* owned */
    hf_md_block shown[BLOCKS_MAX];
    bool has_shown[BLOCKS_MAX];
    size_t n; /* blocks that are run */
    size_t commands, compared;
} session;

/* Lines of a block that begin a command: what continues one, and what it is given to
 * read, does not count. */
static size_t count_commands(const hf_md_block *block)
{
    size_t n = 0;
    bool goes_on = false, fed = false;
    for (const char *line = block->text; line < block->text + block->len;) {
        size_t len = strcspn(line, "\n");
        bool end = fed && len == strlen("END") && strncmp(line, "END", len) == 0;
        n += len > 0 && *line != '#' && !goes_on && !fed ? 1 : 0;
        goes_on = !fed && len > 0 && line[len - 1] == '\\';
        for (size_t i = 0; !fed && i + 1 < len; i++)
            fed = line[i] == '<' && line[i + 1] == '<';
        fed = fed && !end;
        line += len + 1;
    }
    return n;
}

/* A block that looks like a shell's must be run, or say why not. */
static void check_mark(const char *path, const hf_md_block *block)
{
    static const char *const others[] = {"bash", "console", "shell-session", "terminal"};
    static const char why[] = "not run: ";
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(block->info, others[i]) == 0)
            fail_msg("%s: mark the block `sh` (it is run here), or `shell` with the line "
                     "<!-- not run: REASON --> above it, not `%s`:\n%.*s",
                     path, others[i], (int)block->len, block->text);
    if (strcmp(block->info, "shell") != 0)
        return;
    if (strncmp(block->note, why, sizeof why - 1) != 0)
        fail_msg("%s: the line above this `shell` block must be <!-- not run: REASON --> "
                 "(or mark it `sh`, and it is run):\n%.*s",
                 path, (int)block->len, block->text);
    printf("%s: not run, %zu commands: %s\n", path + sizeof HF_TEST_SOURCE,
           count_commands(block), block->note + sizeof why - 1);
}

static void read_session(session *s, const char *path, FILE *script)
{
    hf_md_block block;
    bool after_sh = false;
    *s = (session){.document = hf_md_read(path)};
    (void)fputs("exec 2>&1\n", script);
    for (const char *at = s->document; hf_md_next_block(&at, &block);) {
        bool sh = strcmp(block.info, "sh") == 0;
        check_mark(path, &block);
        if (after_sh && strcmp(block.info, "text") == 0) {
            s->shown[s->n - 1] = block;
            s->has_shown[s->n - 1] = true;
            s->compared++;
        }
        if (sh) {
            assert_true(s->n < BLOCKS_MAX);
            (void)fprintf(script, "%.*secho '" MARK "'\n", (int)block.len, block.text);
            s->commands += count_commands(&block);
            s->n++;
        }
        after_sh = sh;
    }
}

static void run(const char *script, const char *out, const char *const *env)
{
    const char *const args[] = {"bash", script, NULL};
    int status = hf_proc_run(
        &(hf_proc_options){.args = args, .env = env, .out = out, .dir = redis.dir},
        RUN_MS);
    if (status == -1)
        fail_msg("it does not come to an end");
}

/* ---- comparing ---- */

/* Every match becomes the word. */
static void replace(char *text, const char *pattern, const char *word)
{
    regex_t regex;
    regmatch_t match;
    size_t n = strlen(word);
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NEWLINE), 0);
    for (char *at = text;
         regexec(&regex, at, 1, &match, at == text ? 0 : REG_NOTBOL) == 0;) {
        char *from = at + match.rm_so, *to = at + match.rm_eo;
        assert_true((size_t)(to - from) >= n && to > from);
        memmove(from + n, to, strlen(to) + 1);
        for (size_t i = 0; i < n; i++)
            from[i] = word[i];
        at = from + n;
    }
    regfree(&regex);
}

/* No word is longer than what it stands for, so that there is room. */
static void normalise(char *text)
{
    static const char *const rules[][2] = {
        {"^note: a round trip to this Redis takes .*\n", ""}, /* on a busy machine */
        {"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "TIME"},
        {"[0-9a-f]{40}", "SHA1"},
        {"\\b[0-7][0-9A-HJKMNP-TV-Z]{25}\\b", "ID"},
        {"^[P-Z][-0-9A-Z_a-z]{13}$", "ID"}, /* made since 2026 */
        {"\\b([0-9]+(ms|s|m|h|d))+\\b", "T"},
        {"\\b[0-9]{13}\\b", "MS"},
        {"  +", " "}, /* columns are as wide as what is in them */
        {" +$", ""},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        replace(text, rules[i][0], rules[i][1]);
}

static void compare(const char *path, const char *printed, size_t len,
                    const hf_md_block *shown)
{
    char *a = malloc(len + 1), *b = malloc(shown->len + 1);
    assert_non_null(a);
    assert_non_null(b);
    (void)snprintf(a, len + 1, "%.*s", (int)len, printed);
    (void)snprintf(b, shown->len + 1, "%.*s", (int)shown->len, shown->text);
    normalise(a);
    normalise(b);
    if (strcmp(a, b) != 0)
        fail_msg("mend %s, or what it shows. It says:\n%.*sbut what happens is:\n%.*s",
                 path, (int)shown->len, shown->text, (int)len, printed);
    free(a);
    free(b);
}

static void compare_all(const session *s, const char *path, const char *printed)
{
    for (size_t i = 0; i < s->n; i++) {
        const char *end = strstr(printed, MARK "\n");
        if (end == NULL) {
            fail_msg("%s: its block %zu is not run to its end: %s", path, i + 1, printed);
            return;
        }
        if (s->has_shown[i])
            compare(path, printed, (size_t)(end - printed), &s->shown[i]);
        printed = end + sizeof MARK;
    }
}

/* A document whose commands need nothing but what it says and what is in env. */
static void play(const char *path, const char *const *env)
{
    static char printed[TEXT_SIZE];
    char script[PATH_SIZE], out[PATH_SIZE];
    session s;
    (void)snprintf(script, sizeof script, "%s/script", redis.dir);
    (void)snprintf(out, sizeof out, "%s/printed", redis.dir);
    FILE *file = fopen(script, "w");
    assert_non_null(file);
    read_session(&s, path, file);
    assert_int_equal(fclose(file), 0);
    if (s.n > 0)
        run(script, out, env);
    compare_all(&s, path, hf_read_file(out, printed, sizeof printed));
    if (s.n > 0)
        printf("%s: run, %zu commands in %zu blocks, the output of %zu compared\n",
               path + sizeof HF_TEST_SOURCE, s.commands, s.n, s.compared);
    free(s.document);
}

static void what_the_readme_shows_is_what_happens(void **state)
{
    (void)state;
    char tmp[PATH_SIZE];
    (void)snprintf(tmp, sizeof tmp, "TMPDIR=%s", redis.dir);
    make_clone();
    play(HF_TEST_SOURCE "/README.md", (const char *const[]){tmp, NULL});
}

/* With the command in PATH, a Redis to which REDIS_URL and SOCKET lead, the ACL files,
 * and the scripts.
 */
static void play_with_redis(const char *document)
{
    static const char acl[] = "ACL=" HF_TEST_SOURCE "/packaging/acl";
    static const char lua[] = "LUA=" HF_TEST_BUILD "/lua";
    char path[4096], url[PATH_SIZE], socket[PATH_SIZE];
    make_clone();
    (void)snprintf(path, sizeof path, "PATH=%s/build:%s", redis.dir, getenv("PATH"));
    (void)snprintf(url, sizeof url, "REDIS_URL=%s", redis.url);
    (void)snprintf(socket, sizeof socket, "SOCKET=%s", redis.socket);
    play(document, (const char *const[]){path, url, socket, acl, lua, NULL});
}

static bool has_redis_cli(void)
{
    const char *const version[] = {"redis-cli", "--version", NULL};
    return hf_proc_run(&(hf_proc_options){.args = version, .out = "/dev/null"}, RUN_MS) ==
           0;
}

static void what_is_shown_of_users_is_what_happens(void **state)
{
    (void)state;
    if (!has_redis_cli())
        HF_SKIP("there is no redis-cli in PATH");
    if (strstr(hf_fixture_command(&redis, "INFO server"), "redis_version:6") != NULL)
        HF_SKIP("this Redis is older than 7"); /* as the file that is shown */
    play_with_redis(HF_TEST_SOURCE "/docs/security.md");
}

static void what_is_shown_for_other_languages_is_what_happens(void **state)
{
    (void)state;
    if (!has_redis_cli())
        HF_SKIP("there is no redis-cli in PATH");
    play_with_redis(HF_TEST_SOURCE "/docs/keys.md");
    hf_test_audit(&redis, false);
    assert_int_equal(hf_fixture_number(&redis, "ZCARD hf:{default}:schedule"), 2);
}

static bool is_played_elsewhere(const char *path)
{
    return strcmp(path, HF_TEST_SOURCE "/README.md") == 0 ||
           strcmp(path, HF_TEST_SOURCE "/docs/security.md") == 0 ||
           strcmp(path, HF_TEST_SOURCE "/docs/keys.md") == 0;
}

static void what_every_other_document_shows_is_what_happens(void **state)
{
    glob_t found;
    (void)state;
    assert_int_equal(glob(HF_TEST_SOURCE "/docs/*.md", 0, NULL, &found), 0);
    assert_int_equal(glob(HF_TEST_SOURCE "/*.md", GLOB_APPEND, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (is_played_elsewhere(found.gl_pathv[i]))
            continue;
        play_with_redis(found.gl_pathv[i]);
        hf_fixture_stop(&redis); /* each has a Redis of its own */
        hf_fixture_start(&redis, NULL);
    }
    globfree(&found);
}

static void check_configurations(const char *path, size_t *n)
{
    hf_md_block block;
    char file[PATH_SIZE], text[TEXT_SIZE / 8];
    char *document = hf_md_read(path);
    (void)snprintf(file, sizeof file, "%s/shown.yaml", redis.dir);
    const char *const args[] = {HF_TEST_COMMAND, "check", "-c", file, NULL};
    for (const char *at = document; hf_md_next_block(&at, &block);) {
        if (strcmp(block.info, "yaml") != 0)
            continue;
        (void)snprintf(text, sizeof text, "%.*s", (int)block.len, block.text);
        replace(text, "/etc/holdfast/", "./"); /* where the test has such files */
        hf_write_file(file, text);
        assert_int_equal(
            hf_proc_run(
                &(hf_proc_options){.args = args, .out = "/dev/null", .dir = redis.dir},
                RUN_MS),
            0);
        (*n)++;
    }
    free(document);
}

static void every_configuration_in_the_documents_is_good(void **state)
{
    (void)state;
    glob_t found;
    size_t n = 0;
    hf_certs_make(redis.dir);
    assert_int_equal(glob(HF_TEST_SOURCE "/docs/*.md", 0, NULL, &found), 0);
    assert_int_equal(glob(HF_TEST_SOURCE "/README.md", GLOB_APPEND, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        check_configurations(found.gl_pathv[i], &n);
    globfree(&found);
    assert_true(n > 0);
}

int main(void)
{
#define CASE(name) HF_REDIS_TEST(name, &redis)
    const struct CMUnitTest tests[] = {
        CASE(what_the_readme_shows_is_what_happens),
        CASE(what_is_shown_of_users_is_what_happens),
        CASE(what_is_shown_for_other_languages_is_what_happens),
        CASE(what_every_other_document_shows_is_what_happens),
        CASE(every_configuration_in_the_documents_is_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
