/* test_docs.c - everything that the documents name exists: commands and their options,
 * files, scripts, messages, exit codes, pieces of the examples.
 * tests/integration/test_docs.c runs their examples. */
#include <ctype.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "cli/args.h"
#include "cli/exit.h"
#include "lock_scripts.h"
#include "queue_scripts.h"
#include "tests/support/markdown.h"

enum { LINE_SIZE = 1024, WORDS_MAX = 32, MESSAGES_MAX = 96, PATH_SIZE = 1024 };

/* Calls check(path, text) for every document. */
static void for_each_document(void (*check)(const char *path, const char *text))
{
    glob_t found;
    assert_int_equal(glob(HF_TEST_SOURCE "/*.md", 0, NULL, &found), 0);
    assert_int_equal(glob(HF_TEST_SOURCE "/docs/*.md", GLOB_APPEND, NULL, &found), 0);
    assert_true(found.gl_pathc >= 6);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *text = hf_md_read(found.gl_pathv[i]);
        check(found.gl_pathv[i], text);
        free(text);
    }
    globfree(&found);
}

/* ---- commands ---- */

/* "2>log", ">log", "<<'END'". */
static bool redirects(const char *word)
{
    word += isdigit((unsigned char)*word) ? 1 : 0;
    return *word == '>' || *word == '<';
}

/* The words of the first command of a line, as our documents write them. Writes over it.
 */
static size_t split(char *at, char *words[WORDS_MAX])
{
    for (size_t n = 0;;) {
        at += strspn(at, " \\");
        if (*at == '\0' || strchr("#|&;\n", *at) != NULL || n == WORDS_MAX - 1)
            return n;
        const char quote[] = {*at, '\0'};
        bool quoted = *at == '\'' || *at == '"';
        char *word = at + (quoted ? 1 : 0);
        char *end = word + strcspn(word, quoted ? quote : " |&;\n");
        char after = *end;
        *end = '\0';
        if (quoted || !redirects(word))
            words[n++] = word;
        if (after == '\0' || (!quoted && after != ' '))
            return n;
        at = end + 1;
    }
}

/* Fails unless what follows `holdfast` is a command (or a group of them) and its options;
 * or it is only named, without what it needs. */
static void check_command(const char *path, const char *text)
{
    char line[LINE_SIZE], detail[HF_ARGV_DETAIL_SIZE] = "", *words[WORDS_MAX];
    hf_argv args;
    (void)snprintf(line, sizeof line, "%s", text);
    size_t n = split(line, words);
    words[n] = NULL;
    hf_err err = hf_argv_parse(&args, hf_commands(), (int)n, words, detail);
    bool known = args.command != NULL || args.group != NULL || args.help;
    bool named = args.command != NULL && args.n_operands == 0 && args.n_given == 0;
    hf_argv_done(&args);
    if ((err != HF_OK && !named) || !known)
        fail_msg("%s: `%s`: %s", path, text, err != HF_OK ? detail : "no command");
}

/* Every place in a line of a shell where a command may begin. */
static void check_line(const char *path, const char *line, size_t len)
{
    static const char name[] = "holdfast ";
    for (size_t i = 0; i + sizeof name - 1 < len; i++) {
        char text[LINE_SIZE];
        if (strncmp(line + i, name, sizeof name - 1) != 0 ||
            (i > 0 && strchr(" |;&(/", line[i - 1]) == NULL))
            continue;
        (void)snprintf(text, sizeof text, "%.*s", (int)(len - i), line + i);
        check_command(path, text);
    }
}

static void check_commands(const char *path, const char *text)
{
    hf_md_block block;
    char span[HF_MD_SPAN];
    for (const char *at = text; hf_md_next_span(&at, span);)
        if (strncmp(span, "holdfast ", strlen("holdfast ")) == 0)
            check_command(path, span);
    for (const char *at = text; hf_md_next_block(&at, &block);) {
        if (strcmp(block.info, "sh") != 0 && strcmp(block.info, "shell") != 0)
            continue;
        for (const char *line = block.text; line < block.text + block.len;) {
            size_t len = strcspn(line, "\n");
            check_line(path, line, len);
            line += len + 1;
        }
    }
}

static void every_command_in_the_documents_exists(void **state)
{
    (void)state;
    for_each_document(check_commands);
}

static void check_dev(const char *path, const char *text)
{
    char *dev = hf_md_read(HF_TEST_SOURCE "/dev");
    for (const char *at = text; (at = strstr(at, "./dev ")) != NULL; at++) {
        char line[64];
        size_t word = strspn(at + strlen("./dev "), "abcdefghijklmnopqrstuvwxyz");
        (void)snprintf(line, sizeof line, "\n%.*s ", (int)(strlen("./dev ") + word), at);
        if (word > 0 && strstr(dev, line) == NULL)
            fail_msg("%s: %s is not in ./dev help", path, line + 1);
    }
    free(dev);
}

static void every_habit_in_the_documents_exists(void **state)
{
    (void)state;
    for_each_document(check_dev);
}

/* ---- files ---- */

static void must_exist(const char *document, const char *named, const char *path)
{
    if (access(path, F_OK) != 0)
        fail_msg("%s: there is no %s", document, named);
}

/* A span such as `queue/ops.h` whose first part is a folder of the sources. */
static void check_path(const char *document, const char *span)
{
    char path[PATH_SIZE];
    size_t first = strcspn(span, "/");
    if (span[first] == '\0' || first == 0 || strpbrk(span, " <>*{}()") != NULL ||
        strstr(span, "NAME") != NULL || strncmp(span, "build", strlen("build")) == 0)
        return;
    (void)snprintf(path, sizeof path, HF_TEST_SOURCE "/%.*s", (int)first, span);
    if (access(path, F_OK) != 0)
        return;
    (void)snprintf(path, sizeof path, HF_TEST_SOURCE "/%s", span);
    must_exist(document, span, path);
}

static void check_files(const char *document, const char *text)
{
    char span[HF_MD_SPAN];
    for (const char *at = text; hf_md_next_span(&at, span);)
        check_path(document, span);
}

static void every_file_in_the_documents_exists(void **state)
{
    (void)state;
    for_each_document(check_files);
}

/* ---- functions ---- */

/* True if a source that the text names has the function; `call` is its name and "(". */
static bool has_function(const char *text, const char *call)
{
    char span[HF_MD_SPAN], path[PATH_SIZE];
    bool found = false;
    for (const char *at = text; !found && hf_md_next_span(&at, span);) {
        const char *end = strrchr(span, '.');
        if (end == NULL || strchr(span, '/') == NULL ||
            (strcmp(end, ".c") != 0 && strcmp(end, ".h") != 0 &&
             strcmp(end, ".lua") != 0))
            continue;
        (void)snprintf(path, sizeof path, HF_TEST_SOURCE "/%s", span);
        if (access(path, F_OK) != 0)
            continue;
        char *source = hf_md_read(path);
        found = strstr(source, call) != NULL;
        free(source);
    }
    return found;
}

/* A newcomer is told where to look: each function, in a file that is named beside it. */
static void every_function_to_change_is_in_a_file_to_change(void **state)
{
    (void)state;
    char *text = hf_md_read(HF_TEST_SOURCE "/docs/changing.md"), span[HF_MD_SPAN];
    size_t functions = 0;
    for (const char *at = text; hf_md_next_span(&at, span);) {
        size_t len = strlen(span);
        if (len < 3 || strcmp(span + len - 2, "()") != 0 || strstr(span, "NAME") != NULL)
            continue;
        functions++;
        span[len - 1] = '\0';
        if (!has_function(text, span))
            fail_msg("docs/changing.md names no file that has %s)", span);
    }
    assert_true(functions >= 5);
    free(text);
}

/* ---- scripts, messages, exit codes ---- */

static void check_scripts(const hf_script *const *all, const char *keys)
{
    char row[64];
    for (; *all != NULL; all++) {
        const char *name = strchr((*all)->name, '/') + 1;
        (void)snprintf(row, sizeof row, "\n| `%s` |", name);
        if (strstr(keys, row) == NULL)
            fail_msg("docs/keys.md does not describe the script %s", name);
    }
}

static void every_script_is_described(void **state)
{
    (void)state;
    char *keys = hf_md_read(HF_TEST_SOURCE "/docs/keys.md");
    check_scripts(hf_lua_queue_all, keys);
    check_scripts(hf_lua_lock_all, keys);
    free(keys);
}

typedef struct messages {
    size_t n;
    char text[MESSAGES_MAX][HF_MD_SPAN];
} messages;

/* A literal, and those that follow it with only blanks between. Gives what comes after.
 */
static const char *read_literal(const char *at, char out[HF_MD_SPAN])
{
    size_t n = 0;
    for (out[0] = '\0'; *at == '"'; at += strspn(at, " \n")) {
        size_t len = strcspn(++at, "\"");
        assert_true(n + len < HF_MD_SPAN && at[len] == '"');
        memcpy(out + n, at, len);
        n += len;
        out[n] = '\0';
        at += len + 1;
    }
    return at;
}

static const char *next_message(const char *text)
{
    static const char *const marks[] = {"HF_LOG_", "report_outage(w",
                                        "report_fault(served,"};
    const char *first = NULL;
    for (size_t i = 0; i < HF_COUNT(marks); i++) {
        const char *at = strstr(text, marks[i]);
        if (at != NULL && (first == NULL || at < first))
            first = at;
    }
    return first;
}

/* What a file gives to the log: the first literal after a level, in the same statement,
 * and the other one where there is a choice. */
static void collect(messages *found, const char *text)
{
    for (const char *at = text; (at = next_message(at)) != NULL; at++) {
        const char *literal = at + strcspn(at, "\";");
        while (*literal == '"') {
            assert_true(found->n < MESSAGES_MAX);
            const char *after = read_literal(literal, found->text[found->n++]);
            literal = *after == ':' ? after + strcspn(after, "\";") : "";
        }
    }
}

static bool is_known(const messages *known, const char *text)
{
    for (size_t i = 0; i < known->n; i++)
        if (strcmp(known->text[i], text) == 0)
            return true;
    return false;
}

/* The first cells of the table that begins with this heading. */
static void read_table(messages *out, const char *text, const char *heading)
{
    const char *row = strstr(text, heading);
    assert_non_null(row);
    row = strchr(row + 1, '\n') + 1;
    row = strchr(row, '\n') + 1; /* after the line below the heading */
    for (out->n = 0; *row == '|'; row = strchr(row, '\n') + 1) {
        const char *at = row;
        assert_true(out->n < MESSAGES_MAX);
        assert_true(hf_md_next_span(&at, out->text[out->n++]));
    }
}

static void every_message_of_the_worker_is_explained(void **state)
{
    (void)state;
    static messages said, explained;
    glob_t found;
    assert_int_equal(glob(HF_TEST_SOURCE "/worker/*.c", 0, NULL, &found), 0);
    assert_int_equal(glob(HF_TEST_SOURCE "/worker/*/*.c", GLOB_APPEND, NULL, &found), 0);
    assert_int_equal(
        glob(HF_TEST_SOURCE "/cli/worker/worker.c", GLOB_APPEND, NULL, &found), 0);
    assert_int_equal(
        glob(HF_TEST_SOURCE "/cli/worker/service.c", GLOB_APPEND, NULL, &found), 0);
    assert_int_equal(glob(HF_TEST_SOURCE "/cli/worker/log.c", GLOB_APPEND, NULL, &found),
                     0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *text = hf_md_read(found.gl_pathv[i]);
        collect(&said, text);
        free(text);
    }
    globfree(&found);
    char *diagnose = hf_md_read(HF_TEST_SOURCE "/docs/diagnose.md");
    read_table(&explained, diagnose, "\n| message |");
    free(diagnose);
    for (size_t i = 0; i < said.n; i++)
        if (!is_known(&explained, said.text[i]))
            fail_msg("docs/diagnose.md does not explain '%s'", said.text[i]);
    for (size_t i = 0; i < explained.n; i++)
        if (!is_known(&said, explained.text[i]))
            fail_msg("docs/diagnose.md explains '%s', which nobody says",
                     explained.text[i]);
    assert_true(explained.n > 10);
}

static void every_exit_code_is_explained(void **state)
{
    (void)state;
    static const hf_err all[] = {
#define NUMBER(name, number, text) name,
        HF_ERR_MAP(NUMBER)
#undef NUMBER
    };
    char row[32];
    char *commands = hf_md_read(HF_TEST_SOURCE "/docs/commands.md");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        (void)snprintf(row, sizeof row, "\n| %d |", (int)hf_exit_code(all[i]));
        if (strstr(commands, row) == NULL)
            fail_msg("docs/commands.md lacks the exit code %d of %s",
                     (int)hf_exit_code(all[i]), hf_err_name(all[i]));
    }
    free(commands);
}

/* ---- the version ---- */

static void check_site(const char *path, const char *text)
{
    char line[PATH_SIZE], *site = hf_md_read(HF_TEST_SOURCE "/packaging/site/SUMMARY.md");
    (void)text;
    (void)snprintf(line, sizeof line, "](%s)", path + strlen(HF_TEST_SOURCE "/"));
    if (strstr(site, line) == NULL)
        fail_msg("packaging/site/SUMMARY.md: expected a line for %s", line + 1);
    free(site);
}

static void every_document_is_in_the_site(void **state)
{
    (void)state;
    for_each_document(check_site);
}

static void the_changelog_begins_with_this_version(void **state)
{
    (void)state;
    char *text = hf_md_read(HF_TEST_SOURCE "/CHANGELOG.md");
    const char *first = strstr(text, "\n## ");
    assert_non_null(first);
    assert_memory_equal(first, "\n## " HOLDFAST_VERSION " (",
                        strlen("\n## " HOLDFAST_VERSION " ("));
    free(text);
}

/* ---- pieces of the examples ---- */

/* Without the blanks at the beginnings of lines, in place. */
static void dedent(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0';) {
        at += strspn(at, " ");
        size_t len = strcspn(at, "\n");
        len += at[len] == '\n' ? 1 : 0;
        memmove(to, at, len);
        to += len;
        at += len;
    }
    *to = '\0';
}

/* A snippet is made of pieces with this line between them. */
static bool has_all_pieces(const char *example, const char *snippet)
{
    static const char gap[] = "/* ... */\n";
    for (const char *at = snippet; *at != '\0';) {
        const char *end = strstr(at, gap);
        size_t len = end == NULL ? strlen(at) : (size_t)(end - at);
        char piece[LINE_SIZE * 4];
        (void)snprintf(piece, sizeof piece, "%.*s", (int)len, at);
        if (strstr(example, piece) == NULL)
            return false;
        at += end == NULL ? len : len + sizeof gap - 1;
    }
    return true;
}

static void every_snippet_of_c_is_from_an_example(void **state)
{
    (void)state;
    hf_md_block block;
    glob_t found;
    size_t snippets = 0;
    assert_int_equal(glob(HF_TEST_SOURCE "/examples/*.c", 0, NULL, &found), 0);
    char *document = hf_md_read(HF_TEST_SOURCE "/docs/c.md");
    for (const char *at = document; hf_md_next_block(&at, &block);) {
        char snippet[LINE_SIZE * 4];
        bool known = false;
        if (strcmp(block.info, "c") != 0)
            continue;
        snippets++;
        (void)snprintf(snippet, sizeof snippet, "%.*s", (int)block.len, block.text);
        dedent(snippet);
        for (size_t i = 0; i < found.gl_pathc && !known; i++) {
            char *example = hf_md_read(found.gl_pathv[i]);
            dedent(example);
            known = has_all_pieces(example, snippet);
            free(example);
        }
        if (!known)
            fail_msg("docs/c.md shows what is in no example:\n%s", snippet);
    }
    assert_int_equal(snippets, 3);
    free(document);
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_in_the_documents_exists),
        cmocka_unit_test(every_habit_in_the_documents_exists),
        cmocka_unit_test(every_file_in_the_documents_exists),
        cmocka_unit_test(every_function_to_change_is_in_a_file_to_change),
        cmocka_unit_test(every_script_is_described),
        cmocka_unit_test(every_message_of_the_worker_is_explained),
        cmocka_unit_test(every_exit_code_is_explained),
        cmocka_unit_test(every_document_is_in_the_site),
        cmocka_unit_test(the_changelog_begins_with_this_version),
        cmocka_unit_test(every_snippet_of_c_is_from_an_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
