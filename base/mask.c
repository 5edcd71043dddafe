/* mask.c - see mask.h. */
#include "base/mask.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
static const char digits[] = "0123456789";
static const char of_host[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                              "0123456789._-";
static const char of_path[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                              "0123456789._-/,;:)]}'\"`";
/* What may follow a port: the next place, a path, the end of a word or of a sentence. */
static const char after_place[] = " \t\r\n'\"`,;:/.)]}";
/* What ends a word of a message. A value that is masked alone is one word. */
static const char blanks[] = " \t\r\n'\"`";

/* What is hidden; from == to: nothing. The search goes on at `to`. */
typedef struct part {
    const char *from, *to;
} part;

/* The last '@' in [from, to), or "%40", which may be one that was encoded too much. */
static const char *last_at(const char *from, const char *to)
{
    while (to-- > from) {
        if (*to == '@' || strncmp(to, "%40", 3) == 0)
            return to;
    }
    return NULL;
}

/* "host", "host:6379", "[::1]:6379"; NULL: it may be a login. */
static const char *skip_place(const char *at)
{
    const char *start = at;
    if (*at == '[')
        at += strspn(at, "[0123456789abcdefABCDEF:.%]");
    else
        at += strspn(at, of_host);
    if (*at != ':')
        return at;
    size_t n = strspn(at + 1, digits);
    /* strchr() finds the end of the text, too. */
    bool is_port = at > start && n <= 5 && strchr(after_place, at[1 + n]) != NULL;
    return is_port ? at + 1 + n : NULL;
}

/* Places, a path and "?db=N", up to the end of the word; NULL: there may be a login. */
static const char *skip_harmless(const char *at, const char *ends)
{
    do
        at = skip_place(at);
    while (at != NULL && *at == ',' && *++at != '\0');
    if (at == NULL || strchr(after_place, *at) == NULL)
        return NULL;
    at += strspn(at, of_path);
    if (strncmp(at, "?db=", 4) == 0)
        at += 4 + strspn(at + 4, digits);
    return *at == '\0' || strchr(ends, *at) != NULL ? at : NULL;
}

/* Behind "redis", "rediss+cluster", ... and any of ":/", with which a URL may begin that
 * lacks a character. NULL: the word is another one. */
static const char *skip_scheme(const char *word)
{
    static const char *const names[] = {"redis", "rediss", "valkey", "valkeys",
                                        "unix",  "http",   "https"};
    size_t len = strspn(word, letters);
    bool known = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        known =
            known || (len == strlen(names[i]) && strncasecmp(word, names[i], len) == 0);
    if (!known)
        return NULL;
    if (word[len] == '+')
        len += 1 + strspn(word + len + 1, letters);
    size_t marks = strspn(word + len, ":/");
    return marks > 0 ? word + len + marks : NULL;
}

/* The login of "...://": it may contain blanks, so it ends at the last '@' of all. If
 * there is none, the URL was cut, and all of it is hidden unless it is a place. */
static part mask_url(const char *start, const char *last, const char *ends)
{
    if (last != NULL && last >= start)
        return (part){start, last};
    const char *behind = skip_harmless(start, ends);
    if (behind != NULL)
        return (part){behind, behind};
    const char *quote = *ends == '\0' ? NULL : strrchr(start, '\'');
    return (part){start, quote != NULL ? quote : start + strlen(start)};
}

/* A word without "://" that may be the beginning of a URL: "user:password@host",
 * "redis//:password@host", "rediss:/:passwo". */
static part mask_word(const char *word, const char *end, const char *ends)
{
    const char *at = last_at(word, end), *scheme = skip_scheme(word);
    if (at != NULL && word + strcspn(word, ":/") < at)
        return (part){scheme != NULL && scheme < at ? scheme : word, at};
    if (at != NULL || scheme == NULL || scheme >= end)
        return (part){end, end};
    bool has_user = scheme[-1] == ':' && strchr(":/", scheme[-2]) != NULL;
    bool is_port = strspn(scheme, digits) > 0 && strspn(scheme, digits) <= 5;
    bool harmless = is_port || skip_harmless(scheme, ends) != NULL;
    return harmless && !has_user ? (part){end, end} : (part){scheme, end};
}

static void mask(char *text, const char *ends)
{
    const char *at = text, *last = last_at(text, text + strlen(text));
    const char *url = strstr(text, "://");
    char *out = text;
    while (*at != '\0') {
        const char *end = at + (*ends == '\0' ? strlen(at) : strcspn(at, ends));
        if (url != NULL && url < at)
            url = strstr(at, "://");
        part hidden = url != NULL && url < end ? mask_url(url + 3, last, ends)
                                               : mask_word(at, end, ends);
        size_t before = (size_t)(hidden.from - at), n = (size_t)(hidden.to - hidden.from);
        memmove(out, at, before);
        out += before;
        at = hidden.to;
        for (size_t i = 0; i < 3 && i < n; i++)
            *out++ = '*';
        for (; *at != '\0' && strchr(ends, *at) != NULL; at++)
            *out++ = *at;
    }
    *out = '\0';
}

void hf_mask(char *text)
{
    if (strpbrk(text, ":/") != NULL)
        mask(text, blanks);
}

const char *hf_found(char out[HF_FOUND_SIZE], const char *text)
{
    static const char more[] = "...";
    const size_t room = HF_FOUND_SIZE - sizeof more;
    char *copy = strdup(text);
    if (copy == NULL)
        return "***";
    mask(copy, "");
    size_t len = strlen(copy), n = len < room ? len : room;
    /* Not through the middle of a character: its later bytes are 10xxxxxx. */
    while (n > 0 && n < len && ((unsigned char)copy[n] & 0xC0) == 0x80)
        n--;
    memcpy(out, copy, n);
    memcpy(out + n, more, n < len ? sizeof more : 0);
    if (n == len)
        out[n] = '\0';
    free(copy);
    return out;
}
