/* nodes.c - see nodes.h. */
#include "config/nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"

enum { URL_MAX = 64 << 10 };

static const char sentinel[] = "+sentinel";

/* Where a host would follow the login, in a URL of TCP without one. NULL: it is another
 * URL. */
static const char *end_of_login(const char *url)
{
    const char *start = strncasecmp(url, "redis://", 8) == 0    ? url + 8
                        : strncasecmp(url, "rediss://", 9) == 0 ? url + 9
                                                                : NULL;
    if (start == NULL)
        return NULL;
    size_t len = strcspn(start, "/");
    return len == 0 || start[len - 1] == '@' ? start + len : NULL;
}

/* "redis://me:secret@/1" becomes "redis+sentinel://me:secret@h1,h2/master/1", or
 * "redis+cluster://me:secret@h1,h2/1" (`master` NULL). */
static hf_err put_into(hf_config *config, const char *url, const char *login_end,
                       const char *word, char *const *nodes, const char *master)
{
    const char *mark = strstr(url, "://");
    hf_buf out;
    hf_buf_init(&out, URL_MAX);
    hf_buf_add(&out, url, (size_t)(mark - url));
    hf_buf_text(&out, word);
    hf_buf_add(&out, mark, (size_t)(login_end - mark));
    for (size_t i = 0; nodes[i] != NULL; i++)
        hf_buf_printf(&out, "%s%s", i == 0 ? "" : ",", nodes[i]);
    if (master != NULL)
        hf_buf_printf(&out, "/%s", master);
    hf_buf_text(&out, login_end);
    char *whole = hf_buf_err(&out) == HF_OK ? strdup(out.data) : NULL;
    hf_buf_done(&out);
    if (whole == NULL)
        return HF_NOMEM;
    free(config->redis_url);
    config->redis_url = whole;
    return HF_OK;
}

static hf_err refuse(char *found, const char *why)
{
    snprintf(found, HF_DETAIL_SIZE, "%s", why);
    return HF_INVALID;
}

static bool has_word(const char *url, const char *word)
{
    const char *mark = strstr(url, "://");
    size_t len = strlen(word);
    return mark != NULL && (size_t)(mark - url) > len &&
           strncasecmp(mark - len, word, len) == 0;
}

bool hf_url_has_sentinels(const char *url)
{
    return has_word(url, sentinel);
}

static hf_err put(hf_config *config, bool has_url, const char *word, char *const *nodes,
                  const char *master, const char **expected, char *found)
{
    const char *url = has_url ? config->redis_url : "redis://";
    const char *login_end = end_of_login(url);
    *expected = "a 'redis.url' that begins with redis:// or rediss:// and has no host";
    if (login_end == NULL)
        return refuse(found, "another one beside 'nodes'");
    hf_err err = put_into(config, url, login_end, word, nodes, master);
    *expected = master != NULL ? "Sentinels and a name that make a URL"
                               : "nodes of a cluster that make a URL";
    return err == HF_OK ? hf_url_check(config->redis_url, found) : err;
}

hf_err hf_config_put_sentinels(hf_config *config, bool has_url, const char **expected,
                               char found[HF_DETAIL_SIZE])
{
    bool has_master = config->sentinel_master != NULL;
    bool has_nodes = config->sentinel_nodes != NULL;
    *expected = "'master' and 'nodes'";
    if (has_master != has_nodes)
        return refuse(found, has_master ? "'master' alone" : "'nodes' alone");
    if (!has_master)
        return hf_url_has_sentinels(config->redis_url)
                   ? HF_OK
                   : refuse(found, "neither, and a 'redis.url' without Sentinels");
    return put(config, has_url, sentinel, config->sentinel_nodes, config->sentinel_master,
               expected, found);
}

hf_err hf_config_put_cluster(hf_config *config, bool has_url, const char **expected,
                             char found[HF_DETAIL_SIZE])
{
    *expected = "'nodes'";
    if (config->cluster_nodes == NULL)
        return refuse(found, "none");
    return put(config, has_url, "+cluster", config->cluster_nodes, NULL, expected, found);
}
