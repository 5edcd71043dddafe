/* fake_redis.c - see fake_redis.h.
 *
 * One thread owns all connections. Bytes are gathered per connection until a command is
 * whole; the commands that no auto answers wait in one line, in the order of their
 * arrival. */
#include "tests/support/fake_redis.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tests/support/eventually.h"
#include "tests/support/unix_socket.h"

enum { LINKS = 16, INPUT = 1 << 16, WAITING = 64, SHOWN = 240, POLL_MS = 5 };

struct link {
    int fd; /* -1: free */
    size_t used;
    char input[INPUT];
};

struct command {
    struct link *from;
    char text[SHOWN];
};

struct hf_fake_state {
    const hf_fake_auto *autos;
    const hf_fake_step *steps;
    size_t step;
    uint64_t stalled_until;
    int listener;
    struct link links[LINKS];
    struct link *current;
    struct command waiting[WAITING];
    size_t n_waiting;
    pthread_t thread;
    atomic_bool stop;
    atomic_bool done;
    char failure[SHOWN * 2];
};

static void end_link(struct hf_fake_state *s, struct link *l)
{
    if (l->fd >= 0)
        (void)close(l->fd);
    l->fd = -1;
    l->used = 0;
    if (s->current == l)
        s->current = NULL;
}

/* Reads one number that ends in \r\n and moves past it; false: not all here yet. */
static bool number(const char **at, const char *end, char kind, long *out)
{
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    if (stop == NULL || **at != kind)
        return false;
    *out = strtol(*at + 1, NULL, 10);
    *at = stop + 1;
    return true;
}

/* The words of the first command in the input as text, cut to its size; returns the
 * command's length, 0 when it is not whole. */
static size_t parse(const struct link *l, char text[SHOWN])
{
    const char *at = l->input;
    const char *end = l->input + l->used;
    size_t n = 0;
    long words;
    long length;
    if (!number(&at, end, '*', &words))
        return 0;
    for (long i = 0; i < words; i++) {
        if (!number(&at, end, '$', &length) || end - at < length + 2)
            return 0;
        for (long k = 0; k < length && n + 2 < SHOWN; k++)
            text[n++] = at[k] == '\0' ? '?' : at[k];
        if (i + 1 < words && n + 2 < SHOWN)
            text[n++] = ' ';
        at += length + 2;
    }
    text[n] = '\0';
    return (size_t)(at - l->input);
}

static const char *auto_answer(const struct hf_fake_state *s, const char *text)
{
    for (const hf_fake_auto *a = s->autos; a != NULL && a->prefix != NULL; a++)
        if (strncasecmp(a->prefix, text, strlen(a->prefix)) == 0)
            return a->answer;
    return NULL;
}

static void send_all(struct hf_fake_state *s, struct link *l, const char *bytes)
{
    if (!hf_socket_send(l->fd, bytes, strlen(bytes)))
        end_link(s, l);
}

static void take_commands(struct hf_fake_state *s, struct link *l)
{
    char text[SHOWN];
    size_t length;
    while (l->fd >= 0 && s->n_waiting < WAITING && (length = parse(l, text)) > 0) {
        const char *answer = auto_answer(s, text);
        l->used -= length;
        memmove(l->input, l->input + length, l->used);
        if (answer != NULL) {
            send_all(s, l, answer);
            continue;
        }
        struct command *c = &s->waiting[s->n_waiting++];
        c->from = l;
        memcpy(c->text, text, sizeof text);
    }
}

static void read_link(struct hf_fake_state *s, struct link *l)
{
    ssize_t n = read(l->fd, l->input + l->used, INPUT - l->used);
    if (n <= 0) {
        end_link(s, l);
        return;
    }
    l->used += (size_t)n;
    take_commands(s, l);
}

static void look(struct hf_fake_state *s)
{
    struct pollfd fds[LINKS + 1] = {{.fd = s->listener, .events = POLLIN}};
    for (size_t i = 0; i < LINKS; i++)
        fds[i + 1] = (struct pollfd){.fd = s->links[i].fd, .events = POLLIN};
    if (poll(fds, LINKS + 1, POLL_MS) <= 0)
        return;
    for (size_t i = 0; i < LINKS; i++)
        if (fds[i + 1].fd >= 0 && fds[i + 1].revents != 0)
            read_link(s, &s->links[i]);
    if (fds[0].revents == 0)
        return;
    for (size_t i = 0; i < LINKS; i++)
        if (s->links[i].fd < 0) {
            s->links[i].used = 0;
            s->links[i].fd = hf_socket_accept(s->listener);
            return;
        }
}

/* Does one step; false: it has to wait. */
static bool advance(struct hf_fake_state *s)
{
    const hf_fake_step *step = &s->steps[s->step];
    if (step->kind == FAKE_EXPECT) {
        if (s->n_waiting == 0)
            return false;
        struct command c = s->waiting[0];
        memmove(s->waiting, s->waiting + 1, --s->n_waiting * sizeof *s->waiting);
        if (strstr(c.text, step->text) == NULL) {
            (void)snprintf(s->failure, sizeof s->failure,
                           "step %zu expects `%s`, found `%s`", s->step, step->text,
                           c.text);
            end_link(s, c.from); /* its client need not wait for an answer */
            return false;
        }
        s->current = c.from;
    } else if (step->kind == FAKE_STALL) {
        if (s->stalled_until == 0)
            s->stalled_until = hf_test_now_ms() + step->ms;
        if (hf_test_now_ms() < s->stalled_until)
            return false;
        s->stalled_until = 0;
    } else if (s->current != NULL && step->kind == FAKE_SEND) {
        send_all(s, s->current, step->text);
    } else if (s->current != NULL) {
        end_link(s, s->current);
    }
    s->step++;
    return true;
}

static void *serve(void *arg)
{
    struct hf_fake_state *s = arg;
    while (!atomic_load(&s->stop)) {
        while (s->failure[0] == '\0' && s->steps[s->step].kind != FAKE_END && advance(s))
            continue;
        if (s->steps[s->step].kind == FAKE_END)
            atomic_store(&s->done, true);
        if (s->stalled_until != 0)
            hf_test_pause_ms(1);
        else
            look(s);
    }
    return NULL;
}

void hf_fake_start(hf_fake *f, const hf_fake_auto *autos, const hf_fake_step *steps)
{
    struct hf_fake_state *s = calloc(1, sizeof *s);
    hf_tempdir_make(f->dir);
    (void)snprintf(f->socket, sizeof f->socket, "%s/s", f->dir);
    (void)snprintf(f->url, sizeof f->url, "unix://%s", f->socket);
    if (s == NULL || (s->listener = hf_socket_listen(f->socket)) < 0) {
        perror(f->socket);
        exit(1);
    }
    s->autos = autos;
    s->steps = steps;
    for (size_t i = 0; i < LINKS; i++)
        s->links[i].fd = -1;
    f->state = s;
    if (pthread_create(&s->thread, NULL, serve, s) != 0) {
        perror("pthread_create");
        exit(1);
    }
}

bool hf_fake_done(const hf_fake *f)
{
    return atomic_load(&f->state->done);
}

const char *hf_fake_stop(hf_fake *f)
{
    static char why[SHOWN * 2];
    struct hf_fake_state *s = f->state;
    atomic_store(&s->stop, true);
    (void)pthread_join(s->thread, NULL);
    bool done = s->steps[s->step].kind == FAKE_END;
    if (s->failure[0] != '\0')
        memcpy(why, s->failure, sizeof why);
    else
        (void)snprintf(why, sizeof why, "step %zu was not reached or not done", s->step);
    for (size_t i = 0; i < LINKS; i++)
        end_link(s, &s->links[i]);
    (void)close(s->listener);
    hf_tempdir_remove(f->dir);
    free(s);
    f->state = NULL;
    return done ? NULL : why;
}
