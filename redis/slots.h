/* slots.h - the slots of a cluster: which one a key has, and how nodes tell who serves
 * which. */
#ifndef HF_REDIS_SLOTS_H
#define HF_REDIS_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "redis/request.h"
#include "redis/url.h"

enum {
    HF_SLOTS = 16384,
    HF_NODES_MAX = 1000 /* that have slots; Redis recommends no more */
};

/* The slot of a key, from its hash tag: the part between the first `{` and the next `}`,
 * if that is not empty, else the whole key. */
unsigned hf_slot(const char *key, size_t len);

unsigned hf_slots_crc16(const char *data,
                        size_t len); /* CRC-16/XMODEM, of which it is made */

/* An answer of CLUSTER SLOTS. */
typedef struct hf_slot_map {
    hf_place nodes[HF_NODES_MAX];
    size_t n_nodes;
    uint16_t at[HF_SLOTS]; /* 0: no node that can be reached; else 1 + its number */
} hf_slot_map;

/* Reads it. `asked` is the node that answered: its own host may be missing. HF_PROTO (the
 * whole answer cannot be trusted), HF_UNSERVED (it knows no node that has a slot): `why`
 * says what is wrong. */
HF_MUSTCHECK hf_err hf_slot_map_read(hf_slot_map *out, const hf_reply *reply,
                                     const hf_place *asked, char why[HF_DETAIL_SIZE]);

/* Reads "MOVED 3999 10.0.0.1:6379", which `asked` has answered. False: it names no slot
 * or no node that can be reached. */
bool hf_slot_moved_read(const char *words, const hf_place *asked, unsigned *slot,
                        hf_place *to);

#endif
