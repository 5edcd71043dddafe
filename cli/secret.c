/* secret.c - keeps passwords of the command line out of the list of processes (args.h).
 */
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"

/* Overwrites what stands between the user's name and the last '@' of a URL. */
static void overwrite_password(char *url)
{
    char *start = strstr(url, "://");
    char *at = strrchr(url, '@');
    if (start == NULL || at == NULL || at < start)
        return;
    start += 3;
    char *colon = memchr(start, ':', (size_t)(at - start));
    if (colon != NULL)
        start = colon + 1;
    for (; start < at; start++)
        *start = '*';
}

/* The place of the URL in the word i, or NULL: the word is not one. */
static char *url_in(int i, char **argv)
{
    static const char joined[] = "--redis=";
    if (strncmp(argv[i], joined, sizeof joined - 1) == 0)
        return argv[i] + sizeof joined - 1;
    return i > 1 && strcmp(argv[i - 1], "--redis") == 0 ? argv[i] : NULL;
}

hf_err hf_argv_hide_passwords(int argc, char **argv, char ***copies)
{
    size_t n = 0;
    char **own = calloc((size_t)(argc > 0 ? argc : 0) + 1, sizeof *own);
    if (own == NULL)
        return HF_NOMEM;
    *copies = own;
    for (int i = 1; i < argc; i++) {
        char *url = url_in(i, argv);
        if (url == NULL)
            continue;
        char *copy = strdup(argv[i]);
        if (copy == NULL)
            return HF_NOMEM;
        own[n++] = copy;
        overwrite_password(url);
        argv[i] = copy;
    }
    return HF_OK;
}

void hf_argv_free_copies(char **copies)
{
    for (size_t i = 0; copies != NULL && copies[i] != NULL; i++)
        free(copies[i]);
    free(copies);
}
