/* test_tls.c - TLS on bytes: no socket, any size of pieces, any end. */
#include "redis/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/tls_opts.h"
#include "tests/support/certs.h"
#include "tests/support/tempdir.h"
#include "tests/support/tls_peer.h"

static char dir[HF_TEMPDIR_SIZE];
static char *ca, *client_cert, *client_key, *stranger_cert, *stranger_key, *stranger_ca;

static int up(void **state)
{
    (void)state;
    hf_tempdir_make(dir);
    hf_certs_make(dir);
    ca = hf_certs_path(dir, "ca.pem");
    client_cert = hf_certs_path(dir, "client.pem");
    client_key = hf_certs_path(dir, "client.key");
    stranger_cert = hf_certs_path(dir, "stranger.pem");
    stranger_key = hf_certs_path(dir, "stranger.key");
    stranger_ca = hf_certs_path(dir, "stranger-ca.pem");
    return 0;
}

static int down(void **state)
{
    (void)state;
    char *all[] = {ca, client_cert, client_key, stranger_cert, stranger_key, stranger_ca};
    for (size_t i = 0; i < HF_COUNT(all); i++)
        free(all[i]);
    hf_tempdir_remove(dir);
    return 0;
}

static hf_tls *opened(const hf_tls_opts *opts, const char *host)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_tls *tls = NULL;
    if (hf_tls_open(&tls, opts, host, detail) != HF_OK)
        fail_msg("not opened: %s", detail);
    return tls;
}

/* What each side has received. */
typedef struct talk {
    hf_tls *tls;
    hf_tls_peer peer;
    size_t piece;
    char *at_client, *at_server;
    size_t n_client, n_server, size;
} talk;

static void start(talk *t, const hf_tls_opts *opts, const char *host,
                  const hf_tls_peer_opts *server)
{
    hf_tls_peer_opts all = *server;
    all.dir = dir;
    *t = (talk){.tls = opened(opts, host), .piece = 1 << 20, .size = 1 << 20};
    hf_tls_peer_start(&t->peer, &all);
    t->at_client = malloc(t->size);
    t->at_server = malloc(t->size);
    assert_non_null(t->at_client);
    assert_non_null(t->at_server);
}

static void finish(talk *t)
{
    hf_tls_free(t->tls);
    hf_tls_peer_stop(&t->peer);
    free(t->at_client);
    free(t->at_server);
}

static void read_clear(talk *t)
{
    size_t n;
    /* A small buffer, so that a record does not fit into it. */
    while (t->n_client + 1000 <= t->size &&
           (n = hf_tls_read(t->tls, t->at_client + t->n_client, 1000)) > 0)
        t->n_client += n;
}

static bool to_client(talk *t)
{
    char sealed[4096];
    size_t n = hf_tls_peer_sealed(&t->peer, sealed,
                                  t->piece < sizeof sealed ? t->piece : sizeof sealed);
    if (n == 0)
        return false;
    hf_tls_feed(t->tls, sealed, n);
    read_clear(t);
    return true;
}

static bool to_server(talk *t)
{
    hf_bytes sealed = hf_tls_sealed(t->tls);
    size_t n = sealed.len < t->piece ? sealed.len : t->piece;
    if (n == 0)
        return false;
    hf_tls_peer_feed(&t->peer, sealed.ptr, n);
    hf_tls_sent(t->tls, n);
    while ((n = hf_tls_peer_read(&t->peer, t->at_server + t->n_server,
                                 t->size - t->n_server)) > 0)
        t->n_server += n;
    return true;
}

/* Until neither side has anything to send. */
static void pump(talk *t)
{
    bool moved = true;
    while (moved) {
        bool there = to_server(t);
        moved = to_client(t) || there;
    }
}

static void expect_end(talk *t, hf_err err, const char *why)
{
    if (hf_tls_err(t->tls) != err || strstr(hf_tls_why(t->tls), why) == NULL)
        fail_msg("expected %s '%s', found %s '%s'", hf_err_name(err), why,
                 hf_err_name(hf_tls_err(t->tls)), hf_tls_why(t->tls));
    assert_null(strchr(hf_tls_why(t->tls), '\n'));
}

static void bytes_pass_in_pieces_of_any_size(void **state)
{
    static const size_t pieces[] = {1, 7, 100, 4096, 1 << 20};
    static const size_t sizes[] = {1, 16383, 16384, 16385, 100000};
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    static char data[100000];
    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7 + i / 251);
    for (size_t v = 0; v < HF_COUNT(versions); v++) {
        for (size_t i = 0; i < HF_COUNT(pieces); i++) {
            talk t;
            start(&t, &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = ca}, "localhost",
                  &(hf_tls_peer_opts){.version = versions[v]});
            t.piece = pieces[i];
            assert_int_equal(hf_tls_write(t.tls, "early", 5), 0);
            pump(&t);
            assert_true(hf_tls_is_open(t.tls));
            for (size_t s = 0; s < HF_COUNT(sizes); s++) {
                t.n_client = t.n_server = 0;
                assert_int_equal(hf_tls_write(t.tls, data, sizes[s]), sizes[s]);
                hf_tls_peer_write(&t.peer, data, sizes[s]);
                pump(&t);
                assert_int_equal(t.n_client, sizes[s]);
                assert_memory_equal(t.at_client, data, sizes[s]);
                assert_int_equal(t.n_server, sizes[s]);
                assert_memory_equal(t.at_server, data, sizes[s]);
            }
            assert_int_equal(hf_tls_err(t.tls), HF_OK);
            finish(&t);
        }
    }
}

static void no_more_is_kept_than_the_maximum(void **state)
{
    (void)state;
    talk t;
    start(&t, &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = ca}, "localhost",
          &(hf_tls_peer_opts){0});
    pump(&t);
    static char data[1 << 20];
    size_t taken = hf_tls_write(t.tls, data, sizeof data);
    assert_in_range(taken, HF_TLS_SEALED_MAX / 2, HF_TLS_SEALED_MAX + (16 << 10));
    assert_int_equal(hf_tls_write(t.tls, data, sizeof data), 0);
    assert_int_equal(hf_tls_err(t.tls), HF_OK);
    pump(&t);
    assert_int_equal(t.n_server, taken);
    assert_true(hf_tls_write(t.tls, data, 1) == 1);
    finish(&t);
}

static void only_a_certificate_for_the_host_is_accepted(void **state)
{
    static const struct {
        const char *cert, *host, *name;
        bool own_ca, skip;
        hf_err err;
        const char *why;
    } cases[] = {
        {"server", "localhost", NULL, true, false, HF_OK, ""},
        {"server", "127.0.0.1", NULL, true, false, HF_OK, ""},
        {"server", "::1", NULL, true, false, HF_OK, ""},
        {"server", "10.1.2.3", "localhost", true, false, HF_OK, ""},
        {"server", "10.1.2.3", "127.0.0.1", true, false, HF_OK, ""},
        {"wrong", "localhost", NULL, true, false, HF_AUTH, "not for `localhost`"},
        {"wrong", "127.0.0.1", NULL, true, false, HF_AUTH, "not for `127.0.0.1`"},
        {"wrong", "localhost", "elsewhere.example", true, false, HF_OK, ""},
        {"server", "localhost", "other.example", true, false, HF_AUTH,
         "not for `other.example`"},
        {"expired", "localhost", NULL, true, false, HF_AUTH, "has expired"},
        {"server", "localhost", NULL, false, false, HF_AUTH, "certificate"},
        {"stranger", "localhost", NULL, true, false, HF_AUTH, "certificate"},
        {"stranger", "localhost", NULL, true, true, HF_OK, ""},
        {"expired", "elsewhere", NULL, true, true, HF_OK, ""},
    };
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(cases) * HF_COUNT(versions); i++) {
        talk t;
        size_t c = i / HF_COUNT(versions);
        start(&t,
              &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = cases[c].own_ca ? ca : NULL,
                             .server_name = cases[c].name, .skip_verify = cases[c].skip},
              cases[c].host,
              &(hf_tls_peer_opts){.cert = cases[c].cert,
                                  .version = versions[i % HF_COUNT(versions)]});
        pump(&t);
        expect_end(&t, cases[c].err, cases[c].why);
        assert_int_equal(hf_tls_is_open(t.tls), cases[c].err == HF_OK);
        if (cases[c].err != HF_OK)
            assert_int_equal(hf_tls_write(t.tls, "secret", 6), 0);
        finish(&t);
    }
}

static void the_name_is_told_to_the_server_and_an_address_is_not(void **state)
{
    (void)state;
    static const char *const hosts[][2] = {{"localhost", "localhost"},
                                           {"127.0.0.1", NULL}};
    for (size_t i = 0; i < HF_COUNT(hosts); i++) {
        talk t;
        start(&t, &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = ca}, hosts[i][0],
              &(hf_tls_peer_opts){0});
        pump(&t);
        const char *name = SSL_get_servername(t.peer.ssl, TLSEXT_NAMETYPE_host_name);
        if (hosts[i][1] == NULL)
            assert_null(name);
        else
            assert_string_equal(name, hosts[i][1]);
        finish(&t);
    }
}

static void a_server_that_wants_our_certificate_gets_it(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    (void)state;
    const struct {
        const char *cert, *key;
        hf_err err;
        const char *why;
    } cases[] = {
        {client_cert, client_key, HF_OK, ""},
        {NULL, NULL, HF_AUTH, "wants a client certificate"},
        {stranger_cert, stranger_key, HF_AUTH, "refuses the client certificate"}};
    for (size_t i = 0; i < HF_COUNT(cases) * HF_COUNT(versions); i++) {
        talk t;
        size_t c = i / HF_COUNT(versions);
        start(&t,
              &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = ca, .cert = cases[c].cert,
                             .key = cases[c].key},
              "localhost",
              &(hf_tls_peer_opts){.wants_client = true,
                                  .version = versions[i % HF_COUNT(versions)]});
        pump(&t);
        expect_end(&t, cases[c].err, cases[c].why);
        finish(&t);
    }
}

static void what_is_no_tls_ends_the_handshake(void **state)
{
    static const char *const answers[] = {
        "-ERR unknown command\r\n", "-NOAUTH Authentication required.\r\n",
        "HTTP/1.1 400 Bad Request\r\n\r\n", "+PONG\r\n+PONG\r\n"};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(answers); i++) {
        talk t;
        start(&t, &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = ca}, "localhost",
              &(hf_tls_peer_opts){0});
        hf_tls_feed(t.tls, answers[i], strlen(answers[i]));
        read_clear(&t);
        expect_end(&t, HF_CONN, "does not speak TLS");
        finish(&t);
    }
}

/* Feeds the first `n` of the server's sealed bytes in one piece. */
static size_t feed_part(talk *t, size_t n)
{
    static char sealed[1 << 16];
    size_t got = hf_tls_peer_sealed(&t->peer, sealed, n);
    hf_tls_feed(t->tls, sealed, got);
    read_clear(t);
    return got;
}

static void an_end_inside_the_handshake_or_a_record_is_no_good_end(void **state)
{
    (void)state;
    talk t;
    start(&t, &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = ca}, "localhost",
          &(hf_tls_peer_opts){0});
    (void)to_server(&t);
    assert_int_equal(feed_part(&t, 50), 50);
    assert_int_equal(hf_tls_err(t.tls), HF_OK);
    hf_tls_cut(t.tls);
    expect_end(&t, HF_CONN, "in the TLS handshake");
    finish(&t);

    start(&t, &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = ca}, "localhost",
          &(hf_tls_peer_opts){0});
    pump(&t);
    hf_tls_peer_write(&t.peer, "whole", 5);
    pump(&t);
    hf_tls_peer_write(&t.peer, "broken", 6);
    assert_int_equal(feed_part(&t, 10), 10);
    hf_tls_cut(t.tls);
    expect_end(&t, HF_CONN, "Server closed the connection");
    assert_int_equal(t.n_client, 5);
    assert_int_equal(hf_tls_write(t.tls, "more", 4), 0);
    finish(&t);
}

static void noise_ends_it_and_what_came_before_counts(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    (void)state;
    for (size_t v = 0; v < HF_COUNT(versions); v++) {
        for (int corrupt = 0; corrupt < 2; corrupt++) {
            talk t;
            start(&t, &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = ca}, "localhost",
                  &(hf_tls_peer_opts){.version = versions[v]});
            pump(&t);
            char sealed[4096];
            hf_tls_peer_write(&t.peer, "before", 6);
            size_t n = hf_tls_peer_sealed(&t.peer, sealed, sizeof sealed);
            if (corrupt) {
                hf_tls_peer_write(&t.peer, "behind", 6);
                size_t more = hf_tls_peer_sealed(&t.peer, sealed + n, sizeof sealed - n);
                sealed[n + more - 1] ^= 1;
                n += more;
            } else {
                static const char noise[] = {'n', 'o', 'i', 's', 'e', '!'};
                memcpy(sealed + n, noise, sizeof noise);
                n += sizeof noise;
            }
            hf_tls_feed(t.tls, sealed, n);
            read_clear(&t);
            assert_int_equal(t.n_client, 6);
            expect_end(&t, HF_CONN, "TLS: ");
            while (hf_tls_sealed(t.tls).len > 0) /* the alert that says so */
                hf_tls_sent(t.tls, hf_tls_sealed(t.tls).len);
            assert_int_equal(hf_tls_write(t.tls, "more", 4), 0);
            finish(&t);
        }
    }
}

static void both_sides_can_say_goodbye(void **state)
{
    (void)state;
    talk t;
    start(&t, &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = ca}, "localhost",
          &(hf_tls_peer_opts){0});
    pump(&t);
    hf_tls_close(t.tls);
    pump(&t);
    assert_int_equal(SSL_get_shutdown(t.peer.ssl) & SSL_RECEIVED_SHUTDOWN,
                     SSL_RECEIVED_SHUTDOWN);
    finish(&t);

    start(&t, &(hf_tls_opts){HF_TLS_OPTS_INIT, .ca = ca}, "localhost",
          &(hf_tls_peer_opts){0});
    pump(&t);
    hf_tls_peer_write(&t.peer, "last", 4);
    (void)SSL_shutdown(t.peer.ssl);
    pump(&t);
    assert_int_equal(t.n_client, 4);
    expect_end(&t, HF_CONN, "Server closed the connection");
    finish(&t);
}

static char *write_file(const char *name, const char *text)
{
    char *path = hf_certs_path(dir, name);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    return path;
}

static void files_that_cannot_be_used_are_told_by_name(void **state)
{
    (void)state;
    char *noise = write_file("noise.pem", "no certificate\n");
    char *empty = write_file("empty.pem", "");
    char *gone = hf_certs_path(dir, "gone.pem");
    char *locked = hf_certs_path(dir, "locked.key");
    FILE *out = fopen(locked, "we"), *in = fopen(client_key, "re");
    EVP_PKEY *key = PEM_read_PrivateKey(in, NULL, NULL, NULL);
    assert_int_equal(PEM_write_PrivateKey(out, key, EVP_aes_128_cbc(),
                                          (const unsigned char *)"pass", 4, NULL, NULL),
                     1);
    EVP_PKEY_free(key);
    (void)fclose(in);
    (void)fclose(out);
    const struct {
        hf_tls_opts opts;
        hf_err err;
        const char *why;
    } cases[] = {
        {{HF_TLS_OPTS_INIT, .ca = gone}, HF_CONFIG, "gone.pem`: cannot be opened"},
        {{HF_TLS_OPTS_INIT, .ca = noise}, HF_CONFIG, "noise.pem`: expected certificates"},
        {{HF_TLS_OPTS_INIT, .ca = empty}, HF_CONFIG, "empty.pem`: expected certificates"},
        {{HF_TLS_OPTS_INIT, .ca = dir}, HF_CONFIG, "regular file"},
        {{HF_TLS_OPTS_INIT, .ca = "/dev/zero"}, HF_CONFIG, "regular file"},
        {{HF_TLS_OPTS_INIT, .cert = client_cert}, HF_CONFIG, "belong together"},
        {{HF_TLS_OPTS_INIT, .key = client_key}, HF_CONFIG, "belong together"},
        {{HF_TLS_OPTS_INIT, .cert = noise, .key = client_key},
         HF_CONFIG,
         "noise.pem`: expected a certificate"},
        {{HF_TLS_OPTS_INIT, .cert = client_cert, .key = gone}, HF_CONFIG, "gone.pem`"},
        {{HF_TLS_OPTS_INIT, .cert = client_cert, .key = noise},
         HF_CONFIG,
         "noise.pem`: expected a private key"},
        {{HF_TLS_OPTS_INIT, .cert = client_cert, .key = stranger_key},
         HF_CONFIG,
         "stranger.key`: it is not the key"},
        {{HF_TLS_OPTS_INIT, .cert = client_cert, .key = locked},
         HF_CONFIG,
         "locked.key`: expected a private key in PEM without a passphrase"},
        {{HF_TLS_OPTS_INIT, .server_name = ""}, HF_CONFIG, "server name"},
        {{HF_TLS_OPTS_INIT}, HF_OK, ""},
        {{HF_TLS_OPTS_INIT, .ca = ca, .cert = client_cert, .key = client_key}, HF_OK, ""},
    };
    for (size_t i = 0; i < HF_COUNT(cases); i++) {
        char detail[HF_DETAIL_SIZE] = "";
        hf_err err = hf_tls_check(&cases[i].opts, detail);
        if (err != cases[i].err || strstr(detail, cases[i].why) == NULL)
            fail_msg("case %zu: %s '%s'", i, hf_err_name(err), detail);
        assert_int_equal(hf_tls_check(&cases[i].opts, NULL), err);
    }
    free(noise);
    free(empty);
    free(gone);
    free(locked);
}

static void a_copy_of_the_options_stands_alone(void **state)
{
    (void)state;
    char name[] = "a name";
    hf_tls_opts *copy = hf_tls_opts_copy(&(hf_tls_opts){
        HF_TLS_OPTS_INIT, .ca = "", .server_name = name, .skip_verify = true});
    assert_non_null(copy);
    name[0] = 'X';
    assert_string_equal(copy->ca, "");
    assert_null(copy->cert);
    assert_null(copy->key);
    assert_string_equal(copy->server_name, "a name");
    assert_true(copy->skip_verify);
    /* A caller of a version without the last field. */
    hf_tls_opts old = *copy;
    old.size = offsetof(hf_tls_opts, skip_verify);
    hf_tls_opts *of_old = hf_tls_opts_copy(&old);
    assert_non_null(of_old);
    assert_false(of_old->skip_verify);
    assert_string_equal(of_old->server_name, "a name");
    free(of_old);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_pass_in_pieces_of_any_size),
        cmocka_unit_test(no_more_is_kept_than_the_maximum),
        cmocka_unit_test(only_a_certificate_for_the_host_is_accepted),
        cmocka_unit_test(the_name_is_told_to_the_server_and_an_address_is_not),
        cmocka_unit_test(a_server_that_wants_our_certificate_gets_it),
        cmocka_unit_test(what_is_no_tls_ends_the_handshake),
        cmocka_unit_test(an_end_inside_the_handshake_or_a_record_is_no_good_end),
        cmocka_unit_test(noise_ends_it_and_what_came_before_counts),
        cmocka_unit_test(both_sides_can_say_goodbye),
        cmocka_unit_test(files_that_cannot_be_used_are_told_by_name),
        cmocka_unit_test(a_copy_of_the_options_stands_alone),
    };
    return cmocka_run_group_tests(tests, up, down);
}
