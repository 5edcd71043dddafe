/* confirm.h - with wait_replicas: what Redis has answered counts only when replicas have
 * it. Work stops while they are missing, rather than going on unguarded. Belongs to the
 * loop; leases.c does the same on the watchdog's thread. */
#ifndef HF_WORKER_CONFIRM_H
#define HF_WORKER_CONFIRM_H

#include "worker/site.h"

HF_MUSTCHECK hf_err hf_confirm_open(hf_site *site);
void hf_confirm_close(hf_site *site);

/* The connection for claims and verdicts has just been answered. */
void hf_confirm_ask(hf_site *site, hf_confirm *confirm,
                    void (*cb)(void *arg, hf_err err, const char *detail), void *arg);

/* How it ended, for the log: once for each reason and each minute, and again when
 * replicas confirm. */
void hf_confirm_told(hf_site *site, hf_err err, const char *detail);

/* Jobs that were claimed by one request wait (HELD_BACK) until replicas have the claim;
 * else they are given back. */
void hf_confirm_claim(hf_served *served, hf_bytes fence);

#endif
