/* sentinel.h - `redis.sentinel.master` and `nodes` of the file, as a URL. */
#ifndef HF_CONFIG_SENTINEL_H
#define HF_CONFIG_SENTINEL_H

#include <stdbool.h>

#include "config/config.h"

/* Whether a URL names Sentinels. */
bool hf_url_has_sentinels(const char *url);

/* Puts them into the config's URL, which otherwise has no host. `has_url`: that URL is
 * the file's. HF_INVALID: the mapping cannot be used; *expected and `found` say why.
 * HF_NOMEM.
 */
HF_MUSTCHECK hf_err hf_config_put_sentinels(hf_config *config, bool has_url,
                                            const char **expected,
                                            char found[HF_DETAIL_SIZE]);

#endif
