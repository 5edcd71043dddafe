/* routes_table.h - the table of the API: its addresses, and the function of each. */
#ifndef HF_DASHBOARD_ROUTES_TABLE_H
#define HF_DASHBOARD_ROUTES_TABLE_H

#include "dashboard/api.h"
#include "dashboard/overview.h"

typedef struct hf_route {
    bool post;
    const char *path; /* below api/v1; "*" stands for one argument */
    hf_ask_run run;
    const char *change; /* what it changes, for the log; NULL: nothing */
    bool away_is_fine;  /* it answers without Redis, too */
    /* What it reads: names with spaces between them; NULL: nothing. */
    const char *params; /* of the address */
    const char *fields; /* of the body */
} hf_route;

enum { HF_ROUTE_SAID = 512 };

/* The route of an address; NULL: there is none. */
const hf_route *hf_route_find(const hf_http_target *target, bool post);
const hf_route *hf_route_metrics(void);
/* The addresses below the first word of an unknown one; without any, all first words:
 * "queues, queues/Q, ...". Returns `out`. */
enum { HF_ROUTES_TEXT = 512 };
const char *hf_route_names(const hf_http_target *target, bool post,
                           char out[HF_ROUTES_TEXT]);

const hf_route *hf_route_events(void); /* it has no `run` */

/* Whether a request says only what its route reads, and each thing once: else a slip in a
 * name would be taken for "not given". body: NULL: none. False: `said` names it. */
bool hf_route_reads(const hf_route *route, const hf_http_target *target, json_t *body,
                    char said[HF_ROUTE_SAID]);

/* What stands in the places of the stars; the others become NULL. */
void hf_route_args(const hf_route *route, const hf_http_target *target,
                   const char *args[HF_ASK_ARGS]);

#endif
