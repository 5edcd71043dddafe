/* tempdir.c - see tempdir.h. */
#include "tests/support/tempdir.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void hf_tempdir_make(char out[HF_TEMPDIR_SIZE])
{
    const char *base = getenv("TMPDIR");
    const char *name = "/hf-XXXXXX";
    if (base == NULL || base[0] != '/' || strlen(base) + strlen(name) >= HF_TEMPDIR_SIZE)
        base = "/tmp";
    (void)snprintf(out, HF_TEMPDIR_SIZE, "%s%s", base, name);
    if (mkdtemp(out) == NULL) {
        perror(out);
        exit(1);
    }
}

void hf_tempdir_remove(const char *path)
{
    struct stat info;
    if (path[0] == '\0' || lstat(path, &info) != 0)
        return;
    if (!S_ISDIR(info.st_mode)) {
        (void)unlink(path);
        return;
    }
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char inner[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int n = snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (n > 0 && (size_t)n < sizeof inner)
            hf_tempdir_remove(inner);
    }
    if (dir != NULL)
        (void)closedir(dir);
    (void)rmdir(path);
}

const char *hf_read_file(const char *path, char *buf, unsigned size)
{
    size_t n = 0;
    FILE *file = fopen(path, "rb");
    if (file != NULL) {
        n = fread(buf, 1, size - 1, file);
        (void)fclose(file);
    }
    buf[n] = '\0';
    return buf;
}

void hf_write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fputs(text, file) == EOF || fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}
