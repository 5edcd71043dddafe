/* schema.h - the one table of all keys of the configuration file. */
#ifndef HF_CONFIG_SCHEMA_H
#define HF_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/error.h"

typedef enum hf_key_type {
    HF_KEY_MAPPING,   /* keys below it; nothing is stored */
    HF_KEY_QUEUES,    /* a list of mappings: hf_config_queue */
    HF_KEY_HANDLERS,  /* a list of mappings: hf_config_handler */
    HF_KEY_TYPES,     /* a mapping from names to mappings: hf_pool_type */
    HF_KEY_SCHEDULES, /* a list of mappings: hf_schedule */
    HF_KEY_TEXT,      /* char *: not empty */
    HF_KEY_NAME,      /* char *: a name as base/id.h allows it */
    HF_KEY_JOB_TYPE,  /* char *: a name or "*" */
    HF_KEY_URL,       /* char * */
    HF_KEY_LISTEN,    /* char *: where to listen, as base/listen.h reads it */
    HF_KEY_ENDPOINT,  /* char *: a URL of HTTP */
    HF_KEY_CRON,      /* char *: a cron expression */
    HF_KEY_ZONE,      /* char *: a time zone of the system */
    HF_KEY_WORDS,     /* char **: a list of text, the first one not empty */
    HF_KEY_PLACES,    /* char **: a list of "host" or "host:port" */
    HF_KEY_ENV,       /* char **: a list of names of environment variables, or "all" */
    HF_KEY_TIME,      /* int64_t: Unix ms */
    HF_KEY_INTEGER,   /* int64_t, as are all below but NUMBER */
    HF_KEY_DURATION,  /* ms */
    HF_KEY_SIZE,      /* bytes */
    HF_KEY_CHOICE,    /* the place of the word in `choices` */
    HF_KEY_NUMBER     /* double */
} hf_key_type;

/* The struct of config.h, or of <holdfast/worker.h>, that stores a key. */
typedef enum hf_key_owner {
    HF_IN_CONFIG,
    HF_IN_QUEUE,
    HF_IN_HANDLER,
    HF_IN_POOL_TYPE,
    HF_IN_SCHEDULE
} hf_key_owner;

typedef struct hf_key {
    const char *path; /* "worker.lease", "queues[].rate.per" */
    hf_key_type type;
    hf_key_owner owner;
    size_t offset, size; /* of the member, in the owner */
    int64_t min, max;    /* of a number, in its unit; of a list, its entries */
    const char *choices; /* of a CHOICE: words with '|' between */
    const char *preset;  /* the default as one would write it; NULL: there is none */
    const char *unset;   /* the text of the reference where there is no default */
    const char *beside;  /* it stands only in a mapping that has this key; NULL: in any */
    bool required;       /* in each mapping that may have it */
    bool reload;         /* a change takes effect at HUP */
    const char *help;
} hf_key;

const hf_key *hf_schema(size_t *n);

/* The key `name` (len bytes) in the mapping `path` ("" is the file itself), or NULL. */
const hf_key *hf_schema_find(const char *path, const char *name, size_t len);

/* The last part of a key's path, if it is a direct child of the mapping `path`, else
 * NULL. */
const char *hf_schema_child(const hf_key *key, const char *path);

#endif
