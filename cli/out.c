/* out.c - see out.h. */
#include "cli/out.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/text.h"
#include "cli/table.h"
#include "cli/width.h"

enum { PRECISE = 15, DIGITS = 17, REAL_SIZE = 40 };

/* "\\u202e"; of a character above U+FFFF both halves. The length of what was written. */
size_t hf_out_escape(const char *at, size_t len, char out[HF_ESCAPED_SIZE])
{
    uint32_t c = hf_utf8_char(at, len);
    if (c <= 0xffff)
        return (size_t)snprintf(out, HF_ESCAPED_SIZE, "\\u%04x", (unsigned)c);
    c -= 0x10000;
    return (size_t)snprintf(out, HF_ESCAPED_SIZE, "\\u%04x\\u%04x",
                            (unsigned)(0xd800 + (c >> 10)),
                            (unsigned)(0xdc00 + (c & 0x3ff)));
}

/* JSON may have DEL and other control characters as they are. Ends the text. */
static char *escape_controls(char *text)
{
    size_t controls = 0, at = 0;
    for (size_t i = 0; text != NULL && text[i] != '\0'; i++)
        controls += hf_control_len(text + i) > 0;
    char *line =
        text == NULL ? NULL : malloc(strlen(text) + HF_ESCAPED_SIZE * controls + 1);
    for (const char *from = text; line != NULL && *from != '\0';) {
        size_t len = hf_control_len(from);
        if (len == 0)
            line[at++] = *from++;
        else
            at += hf_out_escape(from, len, line + at);
        from += len;
    }
    if (line != NULL)
        line[at] = '\0';
    free(text);
    return line;
}

/* A number with the fewest digits that read back the same. 0: it is longer than `len`. */
static size_t put_real(double number, size_t len, char *out)
{
    char text[REAL_SIZE];
    int n = 0;
    for (int digits = PRECISE; digits <= DIGITS; digits++) {
        n = snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    const bool is_whole = strcspn(text, ".e") == (size_t)n; /* JSON: of another kind */
    n += is_whole ? snprintf(text + n, sizeof text - (size_t)n, ".0") : 0;
    if ((size_t)n > len)
        return 0;
    memcpy(out, text, (size_t)n);
    return (size_t)n;
}

/* The length of a text in quotes. */
static size_t quoted_len(const char *at)
{
    size_t len = 1;
    while (at[len] != '"')
        len += at[len] == '\\' ? 2 : 1;
    return len + 1;
}

/* jansson writes 17 digits: 3.3999999999999999 for 3.4. Up to 15 digits a number has the
 * text that was given. */
static void shorten_reals(char *text)
{
    char *to = text;
    for (const char *at = text; *at != '\0';) {
        const bool is_number = *at == '-' || (*at >= '0' && *at <= '9');
        const size_t len = is_number    ? strspn(at, "-+.0123456789eE")
                           : *at == '"' ? quoted_len(at)
                                        : 1;
        const bool is_long = is_number && len > PRECISE && strcspn(at, ".eE") < len;
        size_t put = is_long ? put_real(strtod(at, NULL), len, to) : 0;
        if (put == 0) {
            memmove(to, at, len);
            put = len;
        }
        to += put;
        at += len;
    }
    *to = '\0';
}

/* NULL as hf_out_line(). */
static char *text_of(const json_t *object)
{
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
    if (text != NULL)
        shorten_reals(text);
    return text;
}

char *hf_out_line(const json_t *object)
{
    return escape_controls(text_of(object));
}

void hf_out_plain(FILE *file, const char *text)
{
    while (*text != '\0') {
        size_t len = hf_control_len(text);
        fputc(len == 0 ? *text : ' ', file);
        text += len == 0 ? 1 : len;
    }
}

/* NULL: only memory can be short. Ends the line. */
static void print_line(FILE *file, char *line)
{
    if (line == NULL)
        fputs("{\"error\":\"out of memory\"}\n", file);
    else
        fprintf(file, "%s\n", line);
    free(line);
}

void hf_out_json(FILE *file, json_t *object)
{
    char *line = hf_out_line(object);
    json_decref(object);
    print_line(file, line);
}

void hf_out_json_with(FILE *file, json_t *object, const char *name, const char *value,
                      size_t len)
{
    char *head = text_of(object);
    size_t head_len = head == NULL ? 0 : strlen(head) - 1; /* up to its bracket */
    size_t size = head_len + strlen(name) + len + sizeof ",\"\":}";
    char *line = head == NULL ? NULL : malloc(size);
    if (line != NULL)
        (void)snprintf(line, size, "%.*s,\"%s\":%.*s}", (int)head_len, head, name,
                       (int)len, value);
    free(head);
    json_decref(object);
    print_line(file, escape_controls(line));
}

json_t *hf_out_bytes(const char *bytes, size_t len, bool *exact)
{
    char *copy = malloc(len + 1);
    *exact = true;
    if (copy == NULL)
        return NULL;
    for (size_t at = 0; at < len;) {
        size_t n = hf_utf8_len(bytes + at, len - at);
        *exact &= n > 0;
        copy[at] = '?';
        if (n > 0)
            memcpy(copy + at, bytes + at, n);
        at += n > 0 ? n : 1;
    }
    json_t *json = json_stringn(copy, len);
    free(copy);
    return json;
}

json_t *hf_out_text(const char *text)
{
    bool exact;
    return hf_out_bytes(text, strlen(text), &exact);
}

json_t *hf_out_time(int64_t unix_ms)
{
    return unix_ms == 0 ? json_null() : json_integer(unix_ms);
}

bool hf_out_is_bright(FILE *file)
{
    const char *no = getenv("NO_COLOR"), *kind = getenv("TERM");
    return isatty(fileno(file)) == 1 && (no == NULL || *no == '\0') &&
           (kind == NULL || strcmp(kind, "dumb") != 0);
}

#define PLAIN "\033[0m"

/* The colour that a terminal gets before the word of a state; "": none. */
static const char *colour_of(const char *state)
{
    static const struct {
        const char *states, *colour;
    } colours[] = {
        {"dead|silent", "\033[31m"},                   /* red */
        {"paused|quiet|stopping|retry", "\033[33m"},   /* yellow */
        {"running|serving|on|held|holds", "\033[32m"}, /* green */
    };
    for (size_t i = 0; i < HF_COUNT(colours); i++) {
        if (hf_words_have(colours[i].states, state, strlen(state)))
            return colours[i].colour;
    }
    return "";
}

void hf_out_state(FILE *file, const char *state)
{
    const char *colour = hf_out_is_bright(file) ? colour_of(state) : "";
    fprintf(file, "%s%s%s", colour, state, *colour != '\0' ? PLAIN : "");
}

/* ---- tables ---- */

enum { LEAST = 16 }; /* no column is cut to less */

void hf_table_init(hf_table *table, const hf_column *columns, size_t n)
{
    HF_ASSERT(n > 0 && n <= HF_COLUMNS_MAX);
    *table = (hf_table){.columns = columns, .n_columns = n};
}

static void cut(char *text, size_t max)
{
    if (hf_width(text) > max)
        memcpy(text + hf_width_bytes(text, max - 3), "...", 4);
}

void hf_table_text(hf_table *table, const char *text)
{
    if (table->n_cells == table->cap) {
        size_t cap = table->cap == 0 ? 64 : table->cap * 2;
        char **cells = realloc(table->cells, cap * sizeof *cells);
        if (cells == NULL) {
            table->failed = true;
            return;
        }
        table->cells = cells;
        table->cap = cap;
    }
    char *copy = malloc(strlen(text) + 4);
    if (copy == NULL) {
        table->failed = true;
        return;
    }
    memcpy(copy, text, strlen(text) + 1);
    hf_text_plain(copy);
    table->cells[table->n_cells++] = copy;
}

void hf_table_number(hf_table *table, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    hf_table_text(table, text);
}

/* The widest column that may be cut and is wider than it needs to be; n: there is none.
 */
static size_t widest(const hf_table *table, const size_t *widths, bool to_least)
{
    size_t n = table->n_columns, found = n;
    for (size_t c = 0; c < n; c++) {
        size_t max = table->columns[c].max;
        size_t floor = to_least || max < LEAST ? LEAST : max;
        if (max > 0 && widths[c] > floor && (found == n || widths[c] > widths[found]))
            found = c;
    }
    return found;
}

/* Makes the table as narrow as the terminal, if that can be: first the columns that are
 * wider than their `max`, then all that may be cut; the widest first. */
static void fit(hf_table *table, size_t *widths, size_t room)
{
    size_t n = table->n_columns, total = 2 * (n - 1);
    for (size_t c = 0; c < n; c++)
        total += widths[c];
    for (int to_least = 0; to_least <= 1 && room > 0; to_least++) {
        size_t c;
        while (total > room && (c = widest(table, widths, to_least == 1)) < n) {
            widths[c]--;
            total--;
        }
    }
    for (size_t i = 0; i < table->n_cells; i++)
        cut(table->cells[i], widths[i % n]);
}

static void print_row(FILE *file, const hf_table *table, char *const *cells,
                      const size_t *widths, bool bright)
{
    size_t n = table->n_columns;
    while (n > 1 && *cells[n - 1] == '\0')
        n--; /* nothing stands behind it: no blanks at the end */
    for (size_t c = 0; c < n; c++) {
        int pad = (int)(widths[c] - hf_width(cells[c]));
        bool state = bright && strcmp(table->columns[c].title, "STATE") == 0;
        const char *colour = state ? colour_of(cells[c]) : "";
        const char *plain = *colour != '\0' ? PLAIN : "";
        if (table->columns[c].right)
            fprintf(file, "%*s%s", pad, "", cells[c]);
        else
            fprintf(file, "%s%s%s%*s", colour, cells[c], plain, c + 1 == n ? 0 : pad, "");
        fputs(c + 1 == n ? "\n" : "  ", file);
    }
}

bool hf_table_print(hf_table *table, FILE *file)
{
    return hf_table_print_in(table, file, hf_width_of_terminal(file),
                             hf_out_is_bright(file));
}

bool hf_table_print_in(hf_table *table, FILE *file, size_t room, bool bright)
{
    char *titles[HF_COLUMNS_MAX] = {NULL};
    size_t widths[HF_COLUMNS_MAX];
    HF_ASSERT(table->n_columns > 0 && table->n_columns <= HF_COLUMNS_MAX);
    size_t whole = table->n_cells - table->n_cells % table->n_columns;
    for (size_t c = 0; c < table->n_columns; c++) {
        titles[c] = (char *)table->columns[c].title; /* is only read */
        widths[c] = hf_width(titles[c]);
    }
    for (size_t i = 0; i < table->n_cells; i++) {
        size_t width = hf_width(table->cells[i]);
        if (width > widths[i % table->n_columns])
            widths[i % table->n_columns] = width;
    }
    fit(table, widths, room);
    if (table->n_cells > 0) {
        fputs(bright ? "\033[1m" : "", file);
        print_row(file, table, titles, widths, false);
        fputs(bright ? "\033[0m" : "", file);
    }
    for (size_t i = 0; i < whole; i += table->n_columns)
        print_row(file, table, table->cells + i, widths, bright);
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i]);
    free(table->cells);
    bool good = !table->failed;
    *table = (hf_table){0};
    return good;
}
