/* test_minder.c - programs do not outlive their lease: not when their worker is killed,
 * not when it is stopped, not when the minder itself dies or was stopped for a while.
 *
 * This program is also its own minder and its own worker, chosen by its first argument. A
 * worker here is a process that runs some programs, writes their pids to a file, and
 * extends or does nothing from then on. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, pipe2; NOLINT(bugprone-reserved-identifier) */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "tests/support/eventually.h"
#include "tests/support/proc.h"
#include "tests/support/tempdir.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "holdfast/minder.h"
#include "lock/minder/minder.h"
#include "lock/minder/spawn.h"
#include "worker/program/programs.h"

enum { N_PROGRAMS = 5, GRACE_MS = 1500, PIDS_MAX = 64 };

#define SELF "/proc/self/exe"

static char dir[HF_TEMPDIR_SIZE], log_path[HF_TEMPDIR_SIZE + 16];

static int up(void **state)
{
    (void)state;
    hf_tempdir_make(dir);
    snprintf(log_path, sizeof log_path, "%s/log", dir);
    return 0;
}

static long logged(const char *what, int nth);

/* A test that fails may leave programs that nobody minds. */
static int down(void **state)
{
    (void)state;
    for (int i = 0; logged("program", i) > 1; i++)
        if (hf_pid_alive((pid_t)logged("program", i))) {
            kill((pid_t)-logged("program", i), SIGKILL);
            kill((pid_t)logged("program", i), SIGKILL);
        }
    if (logged("leak", 0) > 1)
        kill((pid_t)logged("leak", 0), SIGKILL);
    hf_tempdir_remove(dir);
    return 0;
}

/* ---- the worker, a process of its own ---- */

typedef struct worker {
    uv_loop_t loop;
    hf_groups *groups;
    hf_programs *programs;
    hf_process *processes[N_PROGRAMS];
    int started, ready;
} worker;

static void say(const char *what, long number)
{
    char line[64];
    int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int n = snprintf(line, sizeof line, "%s %ld\n", what, number);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        abort();
    close(fd);
}

static void on_line(void *job_arg, int stream, const char *text, size_t len, void *arg)
{
    (void)job_arg, (void)stream, (void)len, (void)arg;
    if (strncmp(text, "up ", 3) == 0)
        say("program", strtol(text + 3, NULL, 10));
}

static void on_ready(bool ready, void *arg)
{
    worker *w = arg;
    w->ready = ready;
    if (ready)
        say("minder", hf_groups_minder_pid(w->groups));
}

static void on_done(const hf_program_result *result, void *arg)
{
    (void)arg;
    say("done", result->status);
}

static bool start_one(worker *w, const char *script, uint64_t deadline_ns,
                      hf_process **out)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    static hf_program spec;
    spec = (hf_program){HF_PROGRAM_INIT, .type = "t", .argv = argv};
    static const char *const names[] = {"HFT_MARK", NULL};
    spec.env = names;
    hf_program_job job = {.id = "j",
                          .type = "t",
                          .queue = "q",
                          .fence = "1",
                          .attempt = 1,
                          .deadline_ns = deadline_ns};
    return hf_programs_start(w->programs, &spec, &job, on_done, w, out) == HF_OK;
}

static void wait_ready(worker *w)
{
    hf_groups_opts groups = {
        .minder_path = SELF, .kill_grace_ms = GRACE_MS, .on_ready = on_ready, .arg = w};
    hf_programs_opts opts = {.on_line = on_line, .arg = w};
    if (uv_loop_init(&w->loop) != 0 ||
        hf_groups_new(&w->groups, &w->loop, &groups, NULL) != HF_OK ||
        hf_programs_new(&w->programs, &w->loop, w->groups, &opts) != HF_OK)
        abort();
    say("minder", hf_groups_minder_pid(w->groups));
}

static void on_extend(uv_timer_t *timer)
{
    worker *w = timer->data;
    for (int i = 0; i < w->started; i++)
        hf_program_extend(w->processes[i], hf_boot_ns() + 60000 * HF_MS_NS);
}

/* worker DIR SCRIPT DEADLINE_MS [extend|leak]: runs N_PROGRAMS, each with that long to
 * live. */
static int be_worker(char **argv)
{
    static worker w;
    int64_t ms;
    snprintf(log_path, sizeof log_path, "%s/log", argv[2]);
    if (!hf_parse_int(argv[4], 1, 1000000, &ms))
        abort();
    wait_ready(&w);
    uint64_t deadline_ns = hf_boot_ns() + (uint64_t)ms * HF_MS_NS;
    for (int i = 0; i < N_PROGRAMS; i++, w.started++)
        if (!start_one(&w, argv[3], deadline_ns, &w.processes[i]))
            abort();
    say("deadline_ms", (long)(deadline_ns / HF_MS_NS));
    const char *mode = argv[5] == NULL ? "" : argv[5];
    if (strcmp(mode, "leak") == 0 && fork() == 0) {
        say("leak", getpid()); /* it holds the pipe, and is no program */
        hf_test_pause_ms(60000);
        _exit(0);
    }
    uv_timer_t timer;
    uv_timer_init(&w.loop, &timer);
    timer.data = &w;
    if (strcmp(mode, "extend") == 0)
        uv_timer_start(&timer, on_extend, 50, 50);
    uv_run(&w.loop, UV_RUN_DEFAULT);
    return 0;
}

/* starter DIR: starts programs as fast as it can, until it is killed. */
static _Noreturn void be_starter(char **argv)
{
    static worker w;
    snprintf(log_path, sizeof log_path, "%s/log", argv[2]);
    wait_ready(&w);
    for (;;) {
        hf_process *process;
        (void)start_one(&w, "exec sleep 30", hf_boot_ns() + 300000 * HF_MS_NS, &process);
        uv_run(&w.loop, UV_RUN_NOWAIT);
    }
}

/* ---- what the worker wrote ---- */

static long logged(const char *what, int nth)
{
    char text[4096];
    const char *line = hf_read_file(log_path, text, sizeof text);
    size_t len = strlen(what);
    for (; line != NULL && *line != '\0'; line = strchr(line, '\n') + 1)
        if (strncmp(line, what, len) == 0 && line[len] == ' ' && nth-- == 0)
            return strtol(line + len, NULL, 10);
    return -1;
}

static int alive(void)
{
    int n = 0;
    for (int i = 0; i < N_PROGRAMS; i++)
        n += hf_pid_alive((pid_t)logged("program", i));
    return n;
}

static bool is_in_state(pid_t pid, char state)
{
    char path[40], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    const char *end = strrchr(hf_read_file(path, text, sizeof text), ')');
    return end != NULL && end[1] == ' ' && end[2] == state;
}

static void start_worker(hf_proc *proc, const char *script, const char *deadline_ms,
                         const char *mode)
{
    const char *args[] = {SELF, "worker", dir, script, deadline_ms, mode, NULL};
    hf_proc_start(proc, &(hf_proc_options){.args = args});
    EVENTUALLY(15000,
               logged("program", N_PROGRAMS - 1) > 0 && logged("deadline_ms", 0) > 0);
}

static long now_ms(void)
{
    return (long)(hf_boot_ns() / HF_MS_NS);
}

/* They end by themselves as well, should a test not come to its end. */
#define QUIET "echo up $$; sleep 30; :"
#define WAIT "for i in $(seq 600); do sleep 0.05; done"
#define DEAF "trap '' TERM; echo up $$; " WAIT
/* Not the leader, which the kernel kills when its worker dies. */
#define CHILD "sh -c 'trap \"\" TERM; echo up $$; " WAIT "' & wait"

/* ---- the worker goes ---- */

static void a_killed_worker_takes_its_programs_along_within_a_second(void **state)
{
    (void)state;
    hf_proc proc;
    start_worker(&proc, CHILD, "60000", NULL);
    pid_t minder = (pid_t)logged("minder", 0);
    assert_int_equal(alive(), N_PROGRAMS);
    hf_proc_kill(&proc);
    EVENTUALLY(15000, alive() == 0);
    EVENTUALLY(15000, !hf_pid_alive(minder));
}

/* Each of them leaves its group, and two their session. */
#define LEFT(how) how " sh -c 'trap \"\" TERM; echo up $$; " WAIT "' & wait"

static void what_left_its_group_goes_with_the_worker_as_well(void **state)
{
    static const char *const ways[] = {LEFT("timeout 60"), LEFT("setsid"),
                                       LEFT("env -i setsid")};
    (void)state;
    for (size_t i = 0; i < HF_COUNT(ways); i++) {
        hf_proc proc;
        start_worker(&proc, ways[i], "60000", NULL);
        hf_proc_kill(&proc);
        EVENTUALLY(15000, alive() == 0);
        (void)unlink(log_path);
    }
}

static void what_left_its_group_ends_at_the_deadline_of_a_stopped_worker(void **state)
{
    hf_proc proc;
    (void)state;
    start_worker(&proc, LEFT("setsid"), "3000", NULL);
    pid_t minder_pid = (pid_t)logged("minder", 0);
    hf_proc_signal(&proc, SIGSTOP);
    kill(minder_pid, SIGSTOP);           /* both */
    for (int i = 0; i < N_PROGRAMS; i++) /* and what they have started */
        kill((pid_t)logged("program", i), SIGSTOP);
    EVENTUALLY(15000, alive() == 0);
    hf_proc_kill(&proc);
}

static void a_pipe_that_another_process_holds_does_not_help_a_program(void **state)
{
    (void)state;
    hf_proc proc;
    start_worker(&proc, CHILD, "60000", "leak");
    EVENTUALLY(15000, logged("leak", 0) > 1);
    hf_proc_kill(&proc);
    EVENTUALLY(15000, alive() == 0);
    EVENTUALLY(15000, !hf_pid_alive((pid_t)logged("minder", 0)));
}

/* Neither of the two comes to it. */
static void a_program_does_not_outlive_its_worker_and_its_minder(void **state)
{
    (void)state;
    hf_proc proc;
    start_worker(&proc, "echo up $$; exec sleep 30", "60000", NULL);
    pid_t minder = (pid_t)logged("minder", 0);
    kill(minder, SIGSTOP);
    EVENTUALLY(15000, is_in_state(minder, 'T'));
    hf_proc_kill(&proc);
    kill(minder, SIGKILL);
    EVENTUALLY(15000, !hf_pid_alive(minder));
    EVENTUALLY(15000, alive() == 0);
}

static void
a_stopped_worker_has_its_programs_asked_then_killed_at_the_deadline(void **state)
{
    (void)state;
    hf_proc proc;
    char script[256], asked[HF_TEMPDIR_SIZE + 16];
    snprintf(asked, sizeof asked, "%s/asked", dir);
    snprintf(script, sizeof script, "trap 'echo . >> %s' TERM; echo up $$; " WAIT, asked);
    start_worker(&proc, script, "8000", NULL);
    hf_proc_signal(&proc, SIGSTOP);
    long deadline_ms = logged("deadline_ms", 0), now = 0;
    char text[64];
    while (now < deadline_ms) {
        int n = alive();
        size_t n_asked = strlen(hf_read_file(asked, text, sizeof text)) / 2;
        now = now_ms(); /* what was seen had happened before this */
        if (now < deadline_ms && n != N_PROGRAMS)
            fail_msg("%d of %d live %ld ms before their deadline", n, N_PROGRAMS,
                     deadline_ms - now);
        if (now < deadline_ms - GRACE_MS)
            assert_int_equal(n_asked, 0);
        hf_test_pause_ms(2);
    }
    EVENTUALLY(15000, alive() == 0);
    assert_int_equal(strlen(hf_read_file(asked, text, sizeof text)), 2 * N_PROGRAMS);
    hf_proc_signal(&proc, SIGCONT);
    EVENTUALLY(15000, logged("done", N_PROGRAMS - 1) == SIGKILL);
    hf_proc_kill(&proc);
}

static void programs_live_on_while_their_deadline_is_extended(void **state)
{
    (void)state;
    hf_proc proc;
    start_worker(&proc, QUIET, "8000", "extend");
    ALWAYS(8500, alive() == N_PROGRAMS);
    hf_proc_kill(&proc);
    EVENTUALLY(15000, alive() == 0);
}

static void no_instant_of_a_workers_death_leaves_a_program(void **state)
{
    (void)state;
    hf_rng rng = {.state = 7};
    for (int round = 0; round < 20; round++) {
        char mark[64], find[128];
        snprintf(mark, sizeof mark, "HFT_MARK=%ld-%d", (long)getpid(), round);
        snprintf(find, sizeof find, "! grep -qsz '^%s$' /proc/[0-9]*/environ", mark);
        const char *args[] = {SELF, "starter", dir, NULL};
        const char *env[] = {mark, NULL};
        const char *look[] = {"sh", "-c", find, NULL};
        hf_proc proc;
        unlink(log_path);
        hf_proc_start(&proc, &(hf_proc_options){.args = args, .env = env});
        EVENTUALLY(15000, logged("minder", 0) > 0);
        uint64_t until_ns = hf_boot_ns() + hf_rng_next(&rng) % (20 * HF_MS_NS);
        while (hf_boot_ns() < until_ns)
            continue;
        hf_proc_kill(&proc);
        EVENTUALLY(15000, hf_proc_run(&(hf_proc_options){.args = look}, 5000) == 0);
    }
}

/* ---- the minder goes ---- */

static void a_new_minder_has_the_whole_list(void **state)
{
    (void)state;
    hf_proc proc;
    start_worker(&proc, DEAF, "60000", NULL);
    pid_t first = (pid_t)logged("minder", 0);
    kill(first, SIGKILL);
    EVENTUALLY(15000, logged("minder", 1) > 0);
    assert_true(logged("minder", 1) != first);
    assert_int_equal(alive(), N_PROGRAMS); /* they do not notice */
    hf_proc_kill(&proc);
    EVENTUALLY(15000, alive() == 0);
}

static void a_minder_that_dies_again_and_again_is_replaced_each_time(void **state)
{
    (void)state;
    hf_proc proc;
    start_worker(&proc, DEAF, "60000", NULL);
    for (int i = 0; i < 4; i++) {
        EVENTUALLY(15000, logged("minder", i) > 0);
        kill((pid_t)logged("minder", i), SIGKILL);
    }
    EVENTUALLY(15000, logged("minder", 4) > 0);
    assert_int_equal(alive(), N_PROGRAMS);
    hf_proc_kill(&proc);
    EVENTUALLY(15000, alive() == 0);
}

static void a_minder_is_not_ended_by_signals_that_ask(void **state)
{
    (void)state;
    static const int asked[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1};
    hf_proc proc;
    start_worker(&proc, DEAF, "60000", NULL);
    pid_t minder = (pid_t)logged("minder", 0);
    for (size_t i = 0; i < HF_COUNT(asked); i++)
        kill(minder, asked[i]);
    ALWAYS(200, hf_pid_alive(minder));
    hf_proc_kill(&proc);
    EVENTUALLY(15000, alive() == 0);
}

static void ps_shows_what_it_is(void **state)
{
    (void)state;
    hf_proc proc;
    char path[64], text[256];
    start_worker(&proc, QUIET, "60000", NULL);
    snprintf(path, sizeof path, "/proc/%ld/cmdline", logged("minder", 0));
    memset(text, 0, sizeof text);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_string_equal(text, "holdfast");
    assert_string_equal(text + 9, "minder");
    hf_proc_kill(&proc);
    EVENTUALLY(15000, alive() == 0);
}

/* ---- the client alone, in this process ---- */

typedef struct group {
    hf_minded minded;
    pid_t pid;
    uint64_t deadline_ns;      /* only of start_large(), and what follows */
    _Atomic uint64_t *seen_ns; /* owned: when it ran last, by itself */
} group;

static uv_loop_t loop;
static hf_minder *minder;
static int ready_calls[2];

static void count_ready(bool ready, void *arg)
{
    (void)arg;
    ready_calls[ready]++;
}

static int minder_up(void **state)
{
    up(state);
    hf_minder_opts opts = {
        .loop = &loop, .path = SELF, .kill_grace_ms = GRACE_MS, .on_ready = count_ready};
    char detail[HF_DETAIL_SIZE];
    ready_calls[0] = ready_calls[1] = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(hf_minder_start(&minder, &opts, detail), HF_OK);
    return 0;
}

static void on_closed(void *arg)
{
    hf_minder_free(*(hf_minder **)arg);
    *(hf_minder **)arg = NULL;
}

static int minder_down(void **state)
{
    hf_minder_close(minder, on_closed, &minder);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_null(minder);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    return down(state);
}

static void start_group(group *g, uint64_t for_ms)
{
    uint64_t deadline_ns = hf_boot_ns() + for_ms * HF_MS_NS;
    pid_t parent = getpid();
    g->pid = fork();
    if (g->pid == 0) {
        setpgid(0, 0);
        while (getppid() == parent) /* a test that fails leaves nobody behind */
            hf_test_pause_ms(100);
        _exit(0);
    }
    assert_true(g->pid > 0);
    setpgid(g->pid, g->pid);
    hf_minder_record record = {HF_MIND_HOLD, (int32_t)g->pid, deadline_ns, 0};
    if (hf_minder_fd(minder) >= 0)
        assert_true(hf_minder_record_write(hf_minder_fd(minder), &record));
    hf_minder_add(minder, &g->minded, g->pid, deadline_ns);
}

static void end_group(group *g)
{
    kill(-g->pid, SIGKILL);
    hf_minder_remove(minder, &g->minded);
    waitpid(g->pid, NULL, 0);
}

static bool all_is_read(void)
{
    int unread = -1;
    return ioctl(hf_minder_fd(minder), FIONREAD, &unread) == 0 && unread == 0;
}

/* While it sleeps, with all read that it was told: not in the middle of reading. */
static void stop_minder(void)
{
    pid_t pid = hf_minder_pid(minder);
    EVENTUALLY(15000, all_is_read() && is_in_state(pid, 'S'));
    kill(pid, SIGSTOP);
    EVENTUALLY(15000, is_in_state(pid, 'T'));
}

static void messages_to_a_stopped_minder_count(void **state)
{
    (void)state;
    group extended = {.pid = 0}, gone = {.pid = 0}, late = {.pid = 0};
    uint64_t ask_ms = hf_test_now_ms() + 2500 - GRACE_MS;
    start_group(&extended, 2500);
    start_group(&gone, 2500);
    start_group(&late, 2500);
    stop_minder();
    hf_minder_extend(minder, &extended.minded, hf_boot_ns() + 60000 * HF_MS_NS);
    hf_minder_remove(minder, &gone.minded); /* its number may be somebody else's now */
    /* The kernel continues it when it is to ask. */
    EVENTUALLY(15000, !hf_pid_alive(late.pid));
    assert_true(hf_test_now_ms() + 1 >= ask_ms);
    ALWAYS(200, hf_pid_alive(extended.pid) && hf_pid_alive(gone.pid));
    end_group(&extended);
    end_group(&gone);
    end_group(&late);
}

static void a_minder_that_is_stopped_again_and_again_kills_in_time(void **state)
{
    enum { STOPS = 20 };
    (void)state;
    group late = {.pid = 0};
    start_group(&late, 2500);
    pid_t pid = hf_minder_pid(minder);
    uint64_t until_ms = hf_test_fair_ms() + 30000;
    stop_minder();
    /* The kernel continues it after each stop. A stop comes at once: it may find no
     * processor before, so that this may not go on for ever. */
    for (int stops = 1; hf_pid_alive(late.pid) && hf_test_fair_ms() < until_ms;) {
        if (stops < STOPS && !is_in_state(pid, 'T')) {
            kill(pid, SIGSTOP);
            stops++;
        }
        hf_test_pause_ms(1);
    }
    bool lived = hf_pid_alive(late.pid);
    kill(pid, SIGCONT);
    end_group(&late);
    assert_false(lived);
}

/* Nobody else does in time: its worker may be killed right after the fork. */
static void a_program_tells_the_minder_of_itself(void **state)
{
    (void)state;
    char name[] = "sleep", seconds[] = "30";
    char *argv[] = {name, seconds, NULL}, *envp[] = {NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    hf_spawn spawn = {.path = "/bin/sleep",
                      .argv = argv,
                      .envp = envp,
                      .fds = {null, null, null, -1, -1},
                      .minder_fd = hf_minder_fd(minder),
                      .cgroup_fd = -1,
                      .deadline_ns = hf_boot_ns() + 2000 * HF_MS_NS};
    hf_spawned spawned;
    assert_int_equal(hf_spawn_start(&spawn, &spawned), HF_OK);
    assert_int_equal(spawned.fault.step, HF_SPAWN_NONE);
    EVENTUALLY(15000, !hf_pid_alive(spawned.pid) ||
                          hf_boot_ns() > spawn.deadline_ns + 5000 * HF_MS_NS);
    bool ended = !hf_pid_alive(spawned.pid);
    hf_spawn_undo(spawned.pid, hf_minder_fd(minder));
    close(spawned.pidfd);
    close(null);
    assert_true(ended);
}

/* As with a host that waits for any child, and a worker that has not seen it yet. */
static void a_number_that_leads_another_group_by_now_is_left_alone(void **state)
{
    (void)state;
    group g = {.pid = 0};
    int pidfd = hf_spawn_pidfd(getpid());
    bool able = hf_spawn_signal_group(pidfd, 0) || errno != ENOTSUP;
    close(pidfd);
    start_group(&g, 1500);
    uint64_t deadline_ms = hf_test_now_ms() + 1500;
    EVENTUALLY(15000, all_is_read() && is_in_state(hf_minder_pid(minder), 'S'));
    kill(g.pid, SIGKILL);
    waitpid(g.pid, NULL, 0);
    pid_t stranger = able ? hf_fork_as(g.pid) : 0;
    if (stranger == 0) {
        print_message("this system cannot: not tried\n");
    } else {
        EVENTUALLY(15000, hf_test_now_ms() > deadline_ms + 500);
        assert_true(hf_pid_alive(stranger));
        kill(stranger, SIGKILL);
        waitpid(stranger, NULL, 0);
    }
    hf_minder_remove(minder, &g.minded);
}

/* A group that does not heed TERM, has this much memory, and notes when it runs. One
 * without is another program, which has none of what this one uses. */
static void start_large(group *g, size_t mib, uint64_t for_ms)
{
    enum { PROT = PROT_READ | PROT_WRITE, ALL = MAP_ANONYMOUS | MAP_POPULATE };
    pid_t parent = getpid();
    g->seen_ns = mmap(NULL, sizeof *g->seen_ns, PROT, MAP_SHARED | ALL, -1, 0);
    assert_ptr_not_equal(g->seen_ns, MAP_FAILED);
    g->pid = fork();
    if (g->pid == 0) {
        (void)setsid(); /* it has no mark: it is found by its session */
        (void)signal(SIGTERM, SIG_IGN);
        if (mib > 0 &&
            mmap(NULL, mib << 20, PROT, MAP_PRIVATE | ALL, -1, 0) == MAP_FAILED)
            _exit(1);
        atomic_store(g->seen_ns, hf_boot_ns());
        if (mib == 0)
            (void)execlp("sleep", "sleep", "30", NULL);
        for (; getppid() == parent; hf_test_pause_ms(1))
            atomic_store(g->seen_ns, hf_boot_ns());
        _exit(0);
    }
    EVENTUALLY(15000, atomic_load(g->seen_ns) != 0);
    g->deadline_ns = hf_boot_ns() + for_ms * HF_MS_NS;
    hf_minder_add(minder, &g->minded, g->pid, g->deadline_ns);
    hf_minder_record record = {HF_MIND_HOLD, (int32_t)g->pid, g->deadline_ns, 0};
    assert_true(hf_minder_record_write(hf_minder_fd(minder), &record));
}

/* How long before its deadline it has gone, and (at least) when it ran last. */
static int64_t gone_before_ns(group *g, int64_t *ran_before_ns)
{
    bool gone = false;
    for (int i = 0; i < 30000 && !gone; i++) {
        gone = waitpid(g->pid, NULL, WNOHANG) == g->pid;
        if (!gone)
            hf_test_pause_ms(1);
    }
    int64_t before_ns = (int64_t)(g->deadline_ns - hf_boot_ns());
    *ran_before_ns = (int64_t)(g->deadline_ns - atomic_load(g->seen_ns));
    hf_minder_remove(minder, &g->minded);
    (void)munmap(g->seen_ns, sizeof *g->seen_ns);
    assert_true(gone);
    return before_ns;
}

/* 768 MiB: 187 ms, and a sanitizer adds an eighth to what it has. A busy machine may be
 * late, but never early: later by as long as the minder had no processor. */
static void one_whose_memory_takes_long_to_free_is_killed_earlier(void **state)
{
    enum {
        MIB = 768,
        FOR_MS = 2000,
        EARLY_MS = 187,
        EARLY_MOST_MS = 240,
        LATE_MS = 100,
        TRIES = 5
    };
    const int64_t ms = HF_MS_NS;
    const pid_t pid = hf_minder_pid(minder);
    int64_t ran_before_ns = 0, ignored_ns;
    (void)state;
    for (int i = 0; i < TRIES && ran_before_ns < (EARLY_MS - LATE_MS) * ms; i++) {
        group large = {.pid = 0}, small = {.pid = 0};
        const uint64_t waited_ns = hf_pid_waited_ns(pid);
        start_large(&large, MIB, FOR_MS);
        start_large(&small, 0, FOR_MS);
        assert_true(gone_before_ns(&large, &ran_before_ns) < EARLY_MOST_MS * ms);
        assert_true(gone_before_ns(&small, &ignored_ns) <= 0);
        ran_before_ns += (int64_t)(hf_pid_waited_ns(pid) - waited_ns);
    }
    assert_true(ran_before_ns >= (EARLY_MS - LATE_MS) * ms);
}

/* However large it is, three quarters of its time are its own. */
static void one_with_little_time_is_killed_a_quarter_earlier_at_most(void **state)
{
    enum { MIB = 768, FOR_MS = 200 };
    group large = {.pid = 0};
    int64_t ignored_ns;
    (void)state;
    start_large(&large, MIB, FOR_MS);
    assert_true(gone_before_ns(&large, &ignored_ns) <=
                (int64_t)((FOR_MS / 4 + 1) * HF_MS_NS));
}

static void a_deadline_never_moves_back(void **state)
{
    (void)state;
    group g = {.pid = 0};
    start_group(&g, 60000);
    hf_minder_extend(minder, &g.minded, hf_boot_ns() + 10 * HF_MS_NS);
    hf_minder_record early = {HF_MIND_HOLD, (int32_t)g.pid, hf_boot_ns(), 0};
    assert_true(hf_minder_record_write(hf_minder_fd(minder), &early));
    ALWAYS(200, hf_pid_alive(g.pid));
    end_group(&g);
}

static void on_guard(uv_timer_t *timer)
{
    (void)timer; /* it ends the loop's wait */
}

/* Until there is another minder, for at most 15 s. */
static void turn_until_replaced(void)
{
    uint64_t until_ms = hf_test_fair_ms() + 15000;
    uv_timer_t guard;
    uv_timer_init(&loop, &guard);
    uv_timer_start(&guard, on_guard, 100, 100);
    while (ready_calls[1] == 0 && hf_test_fair_ms() < until_ms)
        uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&guard, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(ready_calls[0], 1);
    assert_int_equal(ready_calls[1], 1);
    assert_true(hf_minder_ready(minder));
}

/* It is asked again and again meanwhile. */
static void turn_for_4_s(void)
{
    uint64_t until_ms = hf_test_now_ms() + 4000;
    uv_timer_t wake;
    uv_timer_init(&loop, &wake);
    uv_timer_start(&wake, on_guard, 10, 10);
    while (hf_test_now_ms() < until_ms)
        uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&wake, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
}

static void a_stopped_minder_is_replaced_before_its_pipe_is_full(void **state)
{
    (void)state;
    group kept = {.pid = 0}, due = {.pid = 0};
    start_group(&kept, 60000);
    start_group(&due, 10000);
    pid_t first = hf_minder_pid(minder);
    stop_minder();
    turn_until_replaced();
    assert_true(hf_minder_pid(minder) != first);
    assert_false(hf_pid_alive(first));
    assert_true(hf_pid_alive(due.pid));
    EVENTUALLY(15000, !hf_pid_alive(due.pid)); /* the new one knows the list */
    assert_true(hf_pid_alive(kept.pid));
    end_group(&kept);
    end_group(&due);
}

static void a_minder_that_answers_stays(void **state)
{
    (void)state;
    group kept = {.pid = 0};
    start_group(&kept, 60000);
    pid_t first = hf_minder_pid(minder);
    turn_for_4_s();
    assert_int_equal(hf_minder_pid(minder), first);
    assert_int_equal(ready_calls[0], 0);
    end_group(&kept);
}

/* The one before was killed with a question that it has not answered. */
static void a_minder_that_has_replaced_another_stays(void **state)
{
    (void)state;
    group kept = {.pid = 0};
    start_group(&kept, 60000);
    stop_minder();
    turn_until_replaced();
    pid_t second = hf_minder_pid(minder);
    turn_for_4_s();
    assert_int_equal(hf_minder_pid(minder), second);
    assert_int_equal(ready_calls[0], 1);
    end_group(&kept);
}

/* The watchdog's thread does that. */
static void extending_waits_for_no_room_in_the_pipe(void **state)
{
    (void)state;
    enum { MORE_THAN_FITS = 10000 };
    group kept = {.pid = 0};
    start_group(&kept, 60000);
    pid_t first = hf_minder_pid(minder);
    stop_minder();
    uint64_t end_ns = hf_boot_ns() + 60000 * HF_MS_NS;
    for (uint64_t i = 1; i <= MORE_THAN_FITS; i++)
        hf_minder_extend(minder, &kept.minded, end_ns + i);
    assert_true(hf_minder_ready(minder)); /* it has not even been given up */
    assert_int_equal(hf_minder_pid(minder), first);
    turn_until_replaced();
    assert_true(hf_minder_pid(minder) != first);
    assert_int_equal(kept.minded.deadline_ns, end_ns + MORE_THAN_FITS);
    assert_true(hf_pid_alive(kept.pid));
    end_group(&kept);
}

typedef struct extender {
    group *groups;
    size_t n;
    atomic_bool *stop;
} extender;

static void extend_all(void *arg)
{
    extender *e = arg;
    for (uint64_t i = 0; !atomic_load(e->stop); i++)
        hf_minder_extend(minder, &e->groups[i % e->n].minded,
                         hf_boot_ns() + 60000 * HF_MS_NS);
}

static void another_thread_may_extend_at_any_time(void **state)
{
    (void)state;
    enum { N = 8 };
    group groups[N] = {{.pid = 0}};
    atomic_bool stop = false;
    extender e = {groups, N, &stop};
    uv_thread_t thread;
    for (size_t i = 0; i < N; i++)
        start_group(&groups[i], 60000);
    assert_int_equal(uv_thread_create(&thread, extend_all, &e), 0);
    for (int round = 0; round < 3; round++) {
        kill(hf_minder_pid(minder), SIGKILL);
        for (int want = ready_calls[1] + 1; ready_calls[1] < want;)
            uv_run(&loop, UV_RUN_ONCE);
    }
    for (size_t i = 0; i < N; i++) {
        assert_true(hf_pid_alive(groups[i].pid));
        end_group(&groups[i]); /* while it is still being extended */
    }
    atomic_store(&stop, true);
    uv_thread_join(&thread);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "minder") == 0)
        return hf_minder_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "worker") == 0)
        return be_worker(argv);
    if (argc > 1 && strcmp(argv[1], "starter") == 0)
        be_starter(argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
#define MINDER_TEST(name) cmocka_unit_test_setup_teardown(name, minder_up, minder_down)
    const struct CMUnitTest tests[] = {
        TEST(a_killed_worker_takes_its_programs_along_within_a_second),
        TEST(what_left_its_group_goes_with_the_worker_as_well),
        TEST(what_left_its_group_ends_at_the_deadline_of_a_stopped_worker),
        TEST(a_pipe_that_another_process_holds_does_not_help_a_program),
        TEST(a_program_does_not_outlive_its_worker_and_its_minder),
        TEST(a_stopped_worker_has_its_programs_asked_then_killed_at_the_deadline),
        TEST(programs_live_on_while_their_deadline_is_extended),
        TEST(no_instant_of_a_workers_death_leaves_a_program),
        TEST(a_new_minder_has_the_whole_list),
        TEST(a_minder_that_dies_again_and_again_is_replaced_each_time),
        TEST(a_minder_is_not_ended_by_signals_that_ask),
        TEST(ps_shows_what_it_is),
        MINDER_TEST(messages_to_a_stopped_minder_count),
        MINDER_TEST(a_minder_that_is_stopped_again_and_again_kills_in_time),
        MINDER_TEST(a_program_tells_the_minder_of_itself),
        MINDER_TEST(a_number_that_leads_another_group_by_now_is_left_alone),
        MINDER_TEST(one_whose_memory_takes_long_to_free_is_killed_earlier),
        MINDER_TEST(one_with_little_time_is_killed_a_quarter_earlier_at_most),
        MINDER_TEST(a_deadline_never_moves_back),
        MINDER_TEST(a_stopped_minder_is_replaced_before_its_pipe_is_full),
        MINDER_TEST(a_minder_that_answers_stays),
        MINDER_TEST(a_minder_that_has_replaced_another_stays),
        MINDER_TEST(extending_waits_for_no_room_in_the_pipe),
        MINDER_TEST(another_thread_may_extend_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
