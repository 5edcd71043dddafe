/* slots.c - see slots.h. */
#include "redis/slots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/text.h"

/* CRC-16/XMODEM, which the Redis Cluster specification names in its appendix A: the
 * polynomial 0x1021, no initial value, no reflection. */
unsigned hf_slots_crc16(const char *data, size_t len)
{
    unsigned crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)(unsigned char)data[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000U) != 0 ? (crc << 1) ^ 0x1021U : crc << 1;
        crc &= 0xffffU;
    }
    return crc;
}

unsigned hf_slot(const char *key, size_t len)
{
    const char *open = len == 0 ? NULL : memchr(key, '{', len);
    if (open != NULL) {
        const char *tag = open + 1;
        size_t left = len - (size_t)(tag - key);
        const char *close = left == 0 ? NULL : memchr(tag, '}', left);
        if (close != NULL && close > tag)
            return hf_slots_crc16(tag, (size_t)(close - tag)) % HF_SLOTS;
    }
    return hf_slots_crc16(key, len) % HF_SLOTS;
}

/* ---- CLUSTER SLOTS ---- */

static hf_err refuse(char *why, const char *text)
{
    (void)snprintf(why, HF_DETAIL_SIZE, "%s", text);
    return HF_PROTO;
}

static bool read_number(const hf_reply *reply, int64_t max, int64_t *out)
{
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER || reply->integer < 0 ||
        reply->integer > max)
        return false;
    *out = reply->integer;
    return true;
}

/* False: too long, or not text. */
static bool take_host(hf_bytes host, hf_place *out)
{
    if (host.len == 0 || host.len > HF_URL_HOST_MAX ||
        memchr(host.ptr, '\0', host.len) != NULL)
        return false;
    memcpy(out->host, host.ptr, host.len);
    out->host[host.len] = '\0';
    return true;
}

static bool is_unknown(hf_bytes host)
{
    return host.len == 1 && memcmp(host.ptr, "?", 1) == 0;
}

/* The host "?" stands for a name that the node does not know. Then its address may be in
 * the details behind the port and the id: "ip", ADDRESS. */
static hf_bytes known_address(const hf_reply *node)
{
    const hf_reply *more = hf_reply_at(node, 3);
    for (size_t i = 0; i + 1 < hf_reply_len(more); i += 2)
        if (strcmp(hf_reply_text(hf_reply_at(more, i)), "ip") == 0)
            return hf_reply_bytes(hf_reply_at(more, i + 1));
    return (hf_bytes){"", 0};
}

/* HF_OK with port 0: it cannot be reached. */
static hf_err read_node(const hf_reply *node, const hf_place *asked, hf_place *out)
{
    int64_t port = 0;
    hf_bytes host = hf_reply_bytes(hf_reply_at(node, 0));
    bool none = hf_reply_is_nil(hf_reply_at(node, 0)) || host.len == 0;
    *out = (hf_place){.port = 0};
    if (hf_reply_len(node) < 2 || !read_number(hf_reply_at(node, 1), UINT16_MAX, &port))
        return HF_PROTO;
    if (is_unknown(host)) {
        host = known_address(node);
        if (host.len == 0)
            return HF_OK;
        none = false;
    }
    if (none)
        memcpy(out->host, asked->host, sizeof out->host);
    else if (!take_host(host, out))
        return HF_PROTO;
    out->port = (uint16_t)port;
    return HF_OK;
}

/* Its number from 1 on; 0: there are too many. */
static uint16_t number_of(hf_slot_map *map, const hf_place *node)
{
    for (size_t i = map->n_nodes; i-- > 0;)
        if (hf_url_place_is(&map->nodes[i], node))
            return (uint16_t)(i + 1);
    if (map->n_nodes == HF_NODES_MAX)
        return 0;
    map->nodes[map->n_nodes++] = *node;
    return (uint16_t)map->n_nodes;
}

/* "first, last, the primary, its replicas ..." */
static hf_err read_range(hf_slot_map *map, const hf_reply *range, const hf_place *asked,
                         char *why)
{
    int64_t first, last;
    hf_place node;
    if (!read_number(hf_reply_at(range, 0), HF_SLOTS - 1, &first) ||
        !read_number(hf_reply_at(range, 1), HF_SLOTS - 1, &last) || first > last)
        return refuse(why, "expected ranges of slots, found something else");
    if (read_node(hf_reply_at(range, 2), asked, &node) != HF_OK)
        return refuse(why, "expected a node's host and port, found something else");
    if (node.port == 0)
        return HF_OK;
    uint16_t number = number_of(map, &node);
    if (number == 0)
        return refuse(why, "it names more than 1000 nodes");
    for (int64_t slot = first; slot <= last; slot++) {
        if (map->at[slot] != 0)
            return refuse(why, "it names two nodes for one slot");
        map->at[slot] = number;
    }
    return HF_OK;
}

hf_err hf_slot_map_read(hf_slot_map *out, const hf_reply *reply, const hf_place *asked,
                        char why[HF_DETAIL_SIZE])
{
    hf_err err = HF_OK;
    out->n_nodes = 0;
    memset(out->at, 0, sizeof out->at);
    if (!hf_reply_is_array(reply))
        return refuse(why, "CLUSTER SLOTS was not answered with a list");
    for (size_t i = 0; err == HF_OK && i < hf_reply_len(reply); i++)
        err = read_range(out, hf_reply_at(reply, i), asked, why);
    if (err == HF_OK && out->n_nodes == 0) {
        (void)refuse(why, "it knows no node that serves a slot");
        err = HF_UNSERVED;
    }
    return err;
}

/* ---- MOVED ---- */

static bool parse_part(const char *text, size_t len, int64_t max, int64_t *out)
{
    char digits[8];
    if (len == 0 || len >= sizeof digits || text[0] == '-')
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    return hf_parse_int(digits, 0, max, out);
}

bool hf_slot_moved_read(const char *words, const hf_place *asked, unsigned *slot,
                        hf_place *to)
{
    int64_t number = 0, port = 0;
    if (strncmp(words, "MOVED ", 6) != 0)
        return false;
    const char *place = strchr(words + 6, ' ');
    const char *colon = strrchr(words, ':'); /* an IPv6 address has others before it */
    if (place == NULL || colon == NULL || colon <= place ||
        !parse_part(words + 6, (size_t)(place - words) - 6, HF_SLOTS - 1, &number) ||
        !parse_part(colon + 1, strlen(colon + 1), UINT16_MAX, &port) || port == 0)
        return false;
    const hf_bytes host = {place + 1, (size_t)(colon - place) - 1};
    *to = (hf_place){.port = (uint16_t)port};
    *slot = (unsigned)number;
    if (host.len == 0)
        memcpy(to->host, asked->host, sizeof to->host);
    return host.len == 0 || (!is_unknown(host) && take_host(host, to));
}
