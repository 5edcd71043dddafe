/* test_client_names.c - names with several addresses, and name servers that do not
 * answer.
 *
 * This program has its own getaddrinfo(), which the library calls: "many.test" has the
 * addresses that a test gives it, and "stuck.test" is not answered before the test says
 * so. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/support/client_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/redis_fixture.h"

enum { SOON_MS = 30000, PORTS_MAX = 4 };

static hf_fixture redis;

/* ---- the name server ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct {
    uint16_t ports[PORTS_MAX]; /* on 127.0.0.1; 0 ends them */
    bool stuck;
    unsigned asked, answered;
} names;

/* How often the name server was asked, or has answered. */
static unsigned count(const unsigned *which)
{
    (void)pthread_mutex_lock(&mutex);
    unsigned n = *which;
    (void)pthread_mutex_unlock(&mutex);
    return n;
}

static void set_ports(uint16_t first, uint16_t second)
{
    (void)pthread_mutex_lock(&mutex);
    names.ports[0] = first;
    names.ports[1] = second;
    (void)pthread_mutex_unlock(&mutex);
}

static void set_stuck(bool stuck)
{
    (void)pthread_mutex_lock(&mutex);
    names.stuck = stuck;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&mutex);
}

typedef struct entry {
    struct addrinfo info;
    struct sockaddr_in address;
} entry;

static struct addrinfo *make_list(void)
{
    struct addrinfo *list = NULL;
    for (size_t i = PORTS_MAX; i-- > 0;) {
        entry *e = names.ports[i] == 0 ? NULL : calloc(1, sizeof *e);
        if (e == NULL)
            continue;
        e->address = (struct sockaddr_in){.sin_family = AF_INET,
                                          .sin_port = htons(names.ports[i]),
                                          .sin_addr = {htonl(INADDR_LOOPBACK)}};
        e->info = (struct addrinfo){.ai_family = AF_INET,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_addr = (struct sockaddr *)&e->address,
                                    .ai_addrlen = sizeof e->address,
                                    .ai_next = list};
        list = &e->info;
    }
    return list;
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    (void)service;
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    (void)pthread_mutex_lock(&mutex);
    names.asked++;
    while (names.stuck && strcmp(host, "stuck.test") == 0)
        (void)pthread_cond_wait(&changed, &mutex);
    *out = make_list();
    names.answered++;
    (void)pthread_mutex_unlock(&mutex);
    return *out == NULL ? EAI_NONAME : 0;
}

void freeaddrinfo(struct addrinfo *list)
{
    while (list != NULL) {
        entry *e = HF_CONTAINER(list, entry, info);
        list = list->ai_next;
        free(e);
    }
}

/* ---- ports ---- */

/* A port where connections are taken and nobody speaks. */
static int silent_port(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

/* A port where nobody listens. */
static uint16_t closed_port(void)
{
    uint16_t port = 0;
    close(silent_port(&port));
    return port;
}

static int up(void **state)
{
    (void)state;
    memset(&names, 0, sizeof names);
    hf_fixture_start(&redis, &(hf_fixture_options){.tcp = true});
    return 0;
}

/* ---- several addresses ---- */

static void an_address_that_refuses_is_followed_by_the_next(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    set_ports(closed_port(), redis.port);
    hf_client_fixture_connect(&fixture, "redis://many.test:1");
    assert_int_equal(fixture.lost, 0);
    hf_client_fixture_close(&fixture);
}

static void an_address_that_is_silent_leaves_time_for_the_next(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    uint16_t port = 0;
    int fd = silent_port(&port);
    set_ports(port, redis.port);
    uint64_t from_ms = hf_test_fair_ms();
    hf_client_fixture_open_to(&fixture, &(hf_server_opts){.url = "redis://many.test",
                                                          .connect_timeout_ms = 8000});
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready + fixture.lost > 0);
    assert_int_equal(fixture.ready, 1);
    assert_true(hf_test_fair_ms() < from_ms + 6000); /* not at the very end */
    hf_client_fixture_close(&fixture);
    close(fd);
}

static void a_try_has_failed_when_its_last_address_has(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    uint16_t port = 0;
    int fd = silent_port(&port);
    set_ports(port, closed_port());
    hf_client_fixture_open_to(&fixture, &(hf_server_opts){.url = "redis://many.test:7",
                                                          .connect_timeout_ms = 2000});
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 1);
    assert_int_equal(fixture.err, HF_CONN);
    assert_non_null(strstr(fixture.detail, "many.test:7: connection refused"));
    hf_client_fixture_close(&fixture);
    close(fd);
}

static void a_name_is_asked_for_again_at_every_try(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    set_ports(closed_port(), 0);
    hf_client_fixture_open(&fixture, "redis://many.test", NULL);
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 1);
    set_ports(redis.port, 0); /* the server has moved */
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
    assert_in_range(count(&names.asked), 2, fixture.lost + 1);
    hf_client_fixture_close(&fixture);
}

static void a_name_without_an_address_is_told(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    hf_client_fixture_open(&fixture, "redis://many.test", NULL);
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 1);
    assert_int_equal(fixture.err, HF_CONN);
    assert_non_null(strstr(fixture.detail, "cannot be resolved"));
    hf_client_fixture_close(&fixture);
}

/* ---- a name server that does not answer ---- */

static void a_look_up_that_is_stuck_is_told_and_not_doubled(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    set_ports(redis.port, 0);
    set_stuck(true);
    hf_client_fixture_open_to(&fixture, &(hf_server_opts){.url = "redis://stuck.test",
                                                          .connect_timeout_ms = 50});
    RUN_UNTIL(&fixture, SOON_MS, fixture.lost == 3);
    assert_int_equal(fixture.err, HF_CONN);
    assert_non_null(strstr(fixture.detail, "takes too long"));
    assert_int_equal(count(&names.asked), 1);
    set_stuck(false);
    RUN_UNTIL(&fixture, SOON_MS, fixture.ready == 1);
    hf_client_fixture_close(&fixture);
}

static void closing_does_not_wait_for_a_look_up_that_is_stuck(void **state)
{
    (void)state;
    hf_client_fixture fixture;
    set_ports(redis.port, 0);
    set_stuck(true);
    hf_client_fixture_open(&fixture, "redis://stuck.test", NULL);
    RUN_UNTIL(&fixture, SOON_MS, count(&names.asked) == 1);
    hf_client_fixture_close(
        &fixture); /* the loop is gone before the look-up comes back */
    assert_int_equal(count(&names.answered), 0);
    set_stuck(false);
    EVENTUALLY(SOON_MS, count(&names.answered) == 1);
}

static void a_look_up_that_returns_at_the_close_does_no_harm(void **state)
{
    (void)state;
    set_ports(redis.port, 0);
    for (int turns = 0; turns < 40; turns++) {
        hf_client_fixture fixture;
        hf_client_fixture_open(&fixture, "redis://many.test", NULL);
        for (int i = 0; i < turns; i++)
            uv_run(&fixture.loop, UV_RUN_NOWAIT);
        hf_client_fixture_close(&fixture);
    }
    EVENTUALLY(SOON_MS, count(&names.answered) == count(&names.asked));
}

#define CASE(test)                                                                       \
    cmocka_unit_test_prestate_setup_teardown(test, up, hf_fixture_down, &redis)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_address_that_refuses_is_followed_by_the_next),
        CASE(an_address_that_is_silent_leaves_time_for_the_next),
        CASE(a_try_has_failed_when_its_last_address_has),
        CASE(a_name_is_asked_for_again_at_every_try),
        CASE(a_name_without_an_address_is_told),
        CASE(a_look_up_that_is_stuck_is_told_and_not_doubled),
        CASE(closing_does_not_wait_for_a_look_up_that_is_stuck),
        CASE(a_look_up_that_returns_at_the_close_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
