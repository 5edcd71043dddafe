/* producer.c - see producer.h. */
#include "tests/support/producer.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

hf_producer *hf_test_producer(const hf_fixture *redis, hf_producer_opts opts)
{
    hf_server_opts server = {HF_SERVER_OPTS_INIT};
    if (opts.server != NULL)
        server = *opts.server;
    if (server.url == NULL)
        server.url = hf_fixture_url(redis);
    opts.server = &server;
    hf_producer *producer = NULL;
    char detail[HF_DETAIL_SIZE];
    if (hf_producer_open(&producer, &opts, detail) != HF_OK)
        fail_msg("open: %s", detail);
    return producer;
}
