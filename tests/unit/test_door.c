/* test_door.c - worker/pool/door.h: its file. Who gets in is tested by
 * test_worker_pool_joined.c. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/eventually.h"
#include "tests/support/tempdir.h"
#include "worker/pool/door.h"

static uv_loop_t loop;
static char dir[HF_TEMPDIR_SIZE], path[HF_TEMPDIR_SIZE + 16];
static char detail[HF_DETAIL_SIZE];
static hf_joined last;
static int came;

static void on_joined(const hf_joined *joined, void *arg)
{
    (void)arg;
    last = *joined;
    came++;
}

static void on_refused(const char *why, void *arg)
{
    (void)arg;
    fail_msg("refused: %s", why);
}

static const hf_door_calls calls = {on_joined, on_refused};

static hf_err open_at(hf_door **out, const char *at)
{
    detail[0] = '\0';
    return hf_door_open(out, &loop, at, &calls, NULL, detail);
}

static int connect_to_it(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    return connect(fd, (const struct sockaddr *)&at, sizeof at) == 0 ? fd : -1;
}

static int setup(void **state)
{
    (void)state;
    came = 0;
    hf_tempdir_make(dir);
    snprintf(path, sizeof path, "%s/join", dir);
    return uv_loop_init(&loop);
}

static int teardown(void **state)
{
    (void)state;
    uv_run(&loop, UV_RUN_DEFAULT);
    hf_tempdir_remove(dir);
    return uv_loop_close(&loop);
}

static void a_process_that_connects_is_named(void **state)
{
    hf_door *l;
    (void)state;
    assert_int_equal(open_at(&l, path), HF_OK);
    int fd = connect_to_it();
    assert_true(fd >= 0);
    while (came == 0)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(last.pid, getpid());
    assert_int_equal(write(last.fd, "x", 1), 1);
    close(last.fd);
    close(last.pidfd);
    close(fd);
    hf_door_close(l);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_file_that_a_dead_process_has_left_is_replaced(void **state)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    hf_door *l;
    (void)state;
    int left = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    assert_int_equal(bind(left, (const struct sockaddr *)&at, sizeof at), 0);
    close(left);
    assert_int_equal(open_at(&l, path), HF_OK);
    hf_door_close(l);
}

static void a_path_in_use_is_left_alone(void **state)
{
    hf_door *l, *second;
    struct stat was, now;
    (void)state;
    assert_int_equal(open_at(&l, path), HF_OK);
    assert_int_equal(lstat(path, &was), 0);
    assert_int_equal(open_at(&second, path), HF_SYSTEM);
    assert_non_null(strstr(detail, "another process listens there"));
    assert_int_equal(lstat(path, &now), 0);
    assert_true(was.st_ino == now.st_ino);
    hf_door_close(l);
}

static void another_file_is_left_alone(void **state)
{
    hf_door *l;
    (void)state;
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    assert_int_equal(open_at(&l, path), HF_SYSTEM);
    assert_non_null(strstr(detail, "expected no file, or a socket"));
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(unlink(path), 0);
}

/* The number of the path that is tried, and what connect() said when it was there. */
static atomic_int at_path, said;

static void *connect_at_once(void *arg)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int number, before = 0;
    while ((number = atomic_load(&at_path)) >= 0) {
        if (number == before)
            continue;
        int fd = socket(AF_UNIX, SOCK_STREAM, 0), error;
        snprintf(at.sun_path, sizeof at.sun_path, "%s-%d", path, number);
        do
            error = connect(fd, (const struct sockaddr *)&at, sizeof at) == 0 ? 0 : errno;
        while (error == ENOENT);
        close(fd);
        before = number;
        atomic_store(&said, error);
    }
    return arg;
}

static void a_file_that_is_there_can_be_connected_to(void **state)
{
    enum { TRIES = 200, NOTHING = -1 };
    char at[sizeof path + 16];
    pthread_t thread;
    hf_door *l;
    int refused = 0;
    (void)state;
    atomic_store(&at_path, 0);
    assert_int_equal(pthread_create(&thread, NULL, connect_at_once, NULL), 0);
    for (int i = 1; i <= TRIES; i++) {
        snprintf(at, sizeof at, "%s-%d", path, i);
        atomic_store(&said, NOTHING);
        atomic_store(&at_path, i);
        assert_int_equal(open_at(&l, at), HF_OK);
        while (atomic_load(&said) == NOTHING)
            sched_yield();
        refused += atomic_load(&said) != 0;
        hf_door_close(l);
        uv_run(&loop, UV_RUN_DEFAULT);
    }
    atomic_store(&at_path, -1);
    pthread_join(thread, NULL);
    assert_int_equal(refused, 0);
}

static void a_path_that_cannot_be_used_is_told(void **state)
{
    char deep[HF_TEMPDIR_SIZE + 16], at[200];
    hf_door *l;
    (void)state;
    memset(at, 'a', sizeof at);
    at[sizeof at - 1] = '\0';
    assert_int_equal(open_at(&l, at), HF_SYSTEM);
    assert_non_null(strstr(detail, "at most 99 bytes"));
    snprintf(deep, sizeof deep, "%s/no/join", dir);
    assert_int_equal(open_at(&l, deep), HF_SYSTEM);
    assert_non_null(strstr(detail, "No such file or directory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_process_that_connects_is_named),
        TEST(a_file_that_a_dead_process_has_left_is_replaced),
        TEST(a_path_in_use_is_left_alone),
        TEST(another_file_is_left_alone),
        TEST(a_file_that_is_there_can_be_connected_to),
        TEST(a_path_that_cannot_be_used_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
