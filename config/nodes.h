/* nodes.h - the Sentinels (`redis.sentinel`) or the nodes of a cluster (`redis.cluster`)
 * of the file, as a URL. */
#ifndef HF_CONFIG_NODES_H
#define HF_CONFIG_NODES_H

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
/* The same for `redis.cluster.nodes`. */
HF_MUSTCHECK hf_err hf_config_put_cluster(hf_config *config, bool has_url,
                                          const char **expected,
                                          char found[HF_DETAIL_SIZE]);

#endif
