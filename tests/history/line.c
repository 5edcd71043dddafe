/* line.c - see line.h. */
#include "tests/history/line.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_MAX = 32 };

static const char *find(const char *line, const char *key)
{
    char wanted[KEY_MAX];
    int len = snprintf(wanted, sizeof wanted, "\"%s\":", key);
    const char *at = strstr(line, wanted);
    return at == NULL ? NULL : at + len;
}

const char *hf_line_text(const char *line, const char *key, char *out, size_t size)
{
    const char *at = find(line, key);
    size_t len = 0;
    if (at != NULL) {
        bool quoted = *at == '"';
        at += quoted;
        len = strcspn(at, quoted ? "\"" : ",}");
        len = len < size ? len : size - 1;
        memcpy(out, at, len);
    }
    out[len] = '\0';
    return out;
}

uint64_t hf_line_number(const char *line, const char *key)
{
    const char *at = find(line, key);
    if (at == NULL)
        return 0;
    return strtoull(at + (*at == '"'), NULL, 10);
}

bool hf_line_is(const char *line, const char *key, const char *value)
{
    const char *at = find(line, key);
    size_t len = strlen(value);
    return at != NULL && *at == '"' && strncmp(at + 1, value, len) == 0 &&
           at[len + 1] == '"';
}

void hf_lines_read(const char *path, void (*each)(const char *line, void *arg), void *arg)
{
    char line[HF_LINE_MAX];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    while (fgets(line, sizeof line, file) != NULL)
        if (line[0] == '{' && strchr(line, '\n') != NULL)
            each(line, arg);
    (void)fclose(file);
}

int hf_lines_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        perror(path);
        exit(1);
    }
    return fd;
}

void hf_line_write(int fd, const char *format, ...)
{
    char line[HF_LINE_MAX];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof line - 1) {
        (void)fprintf(stderr, "a line of a history is too long\n");
        exit(1);
    }
    line[len] = '\n';
    if (write(fd, line, (size_t)len + 1) != len + 1) {
        perror("history");
        exit(1);
    }
}
