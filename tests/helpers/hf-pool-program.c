/* hf-pool-program.c - a program of a pool, for the tests: it speaks `pipe 1`
 * (docs/pipe.md) and does what the type of a job says, with the payload as its argument.
 *
 *   noop  echo (the payload is the result)  sleep (MS)  dead (it prints)  release  cancel
 *   file (PATH)  waits until that file is there
 *   gentle    waits; asked to end, it says `retry` at once
 *   deaf      waits for ever, and does not heed the request to end
 *   hang      stands still: it reads nothing, and ignores TERM
 *   crash (SEGV)  exit (STATUS)  late-exit (waits MS, then ends with 3)
 *   garbage   writes what is no frame         half   half a verdict, and then nothing
 *   twice     two verdicts                    strange  a verdict for no run, then its own
 *   done-crash (MS)  a whole verdict, then it aborts
 *   print     to both outputs                 fork   leaves a child that has its socket
 *   close     done, and then it closes its socket
 *   tell      progress, a checkpoint and a log, and it waits; with a checkpoint it is
 *             done, and that is its result
 *   big       a result that is too long       text   a result that is no JSON, said to be
 *   leave     done, and wants to be replaced; with a payload it never ends
 *   grow      done, with MiB more memory
 *   env       its result is the value of that variable        cwd    its directory
 *   exec      becomes `sleep`, and its socket is closed          halt   stops itself
 *   die-idle (STATUS)  done, and ends a moment later
 *   ignore    done, and ends when the next job is there, without reading it; with a
 *             payload it leaves a child that has its socket
 *
 * How it starts, by its arguments:
 *
 *   log=FILE        "start PID", "begin PID ID NS", "end PID ID NS" (boot time),
 *                   "cancel PID ID NS", "stop PID"
 *   runs=FILE       the lines of tests/helpers/hf-handler.c: start, end, and a beat
 *                   each beat=MS (25)
 *   parallel=N  version=N  ready-after=MS  timeout=MS (of each type)
 *   pieces          what it says comes in pieces of one byte
 *   types=FILE      the types that it offers, separated by spaces, are in FILE
 *   start=FILE      how it starts is in FILE: "exit STATUS", "never", "twice", "early"
 *                   (with the verdict of a job that has not come), "unread" (it is
 *                   ready, and reads nothing), "ignore" (the same, and it ends when
 *                   there is a job) or nothing
 *   members=FILE    more members of each type are in FILE: ,"queue":"mail"
 *   schedules=FILE  and its schedules: {...},{...}
 *   plain           it has no handlers for signals
 *
 * Without HOLDFAST_FD it joins the pool at HOLDFAST_SOCKET. */
#define _GNU_SOURCE /* CLOCK_BOOTTIME */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_SIZE = 16 << 10, RUNS = 64, BIG = 65 << 10, LOOK_MS = 20 };

static const char all_types[] =
    "noop echo sleep dead release cancel gentle deaf hang crash exit late-exit garbage "
    "half twice strange done-crash print fork close tell big text leave grow "
    "env cwd die-idle exec halt ignore file";

typedef struct run {
    long number; /* 0: none */
    char id[80], type[80], attempt[16], fence[24];
    char *payload;
    long n;
    uint64_t due_ns; /* 0: it waits for ever */
    uint64_t beat_ns;
} run;

static int fd;
static long parallel = 1, version = 1, ready_after_ms, timeout_ms, beat_ms = 25;
static const char *log_file, *types_file, *start_file, *members_file, *schedules_file;
static const char *runs_file;
static bool stopping, plain, in_pieces;
static run runs[RUNS];

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0)
        continue;
}

/* id: with what else is known of the job. */
static void note_in(const char *file, const char *what, const char *id)
{
    char line[256];
    if (file == NULL)
        return;
    int to = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    int n = snprintf(line, sizeof line, "%s %d %s %llu\n", what, (int)getpid(), id,
                     (unsigned long long)now_ns());
    if (to < 0 || write(to, line, (size_t)n) != n)
        abort();
    close(to);
}

static void note(const char *what, const char *id)
{
    note_in(log_file, what, id);
}

static void note_run(const char *what, const run *r)
{
    char text[128];
    snprintf(text, sizeof text, "%s %s %s", r->id, r->attempt, r->fence);
    note_in(runs_file, what, text);
}

static void put(const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, bytes, in_pieces ? 1 : n);
        if (done < 0 && errno != EINTR)
            exit(0); /* the worker is gone */
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        }
    }
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char text[LINE_MAX_SIZE];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    put(text, (size_t)n);
}

/* One write, so that the program may end behind it. */
static void done(const run *r, const char *body)
{
    note_run("end", r);
    say("{\"t\":\"done\",\"run\":%ld,\"n\":%zu}\n%s", r->number, strlen(body), body);
}

static void take(char *to, long n)
{
    while (n > 0) {
        ssize_t got = read(fd, to, (size_t)n);
        if (got == 0)
            exit(0);
        if (got < 0 && errno != EINTR)
            abort();
        if (got > 0) {
            to += got;
            n -= got;
        }
    }
}

static void read_line(char *line)
{
    size_t len = 0;
    do
        take(&line[len++], 1);
    while (line[len - 1] != '\n' && len < LINE_MAX_SIZE - 1);
    line[len] = '\0';
}

/* The worker writes these members, and no white space. */
static long number(const char *line, const char *name)
{
    char key[32];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *at = strstr(line, key);
    return at == NULL ? 0 : strtol(at + strlen(key), NULL, 10);
}

static void text(const char *line, const char *name, char *out, size_t size)
{
    char key[32];
    snprintf(key, sizeof key, "\"%s\":\"", name);
    const char *at = strstr(line, key);
    at = at == NULL ? "" : at + strlen(key);
    snprintf(out, size, "%.*s", (int)strcspn(at, "\""), at);
}

static void forget(run *r)
{
    note("end", r->id);
    free(r->payload);
    *r = (run){.number = 0};
}

static void break_out(const run *r)
{
    const char *type = r->type;
    if (strcmp(type, "crash") == 0) {
        fprintf(stderr, "about to crash\n");
        (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer takes it otherwise */
        raise(SIGSEGV);
    }
    if (strcmp(type, "exit") == 0)
        exit((int)strtol(r->payload, NULL, 10));
    if (strcmp(type, "late-exit") == 0)
        exit(3);
    if (strcmp(type, "done-crash") == 0) {
        done(r, "");
        abort();
    }
    if (strcmp(type, "exec") == 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        execlp("sleep", "sleep", "60", (char *)NULL);
    }
    if (strcmp(type, "halt") == 0)
        raise(SIGSTOP);
    if (strcmp(type, "garbage") == 0)
        say("Traceback (most recent call last):\n");
    if (strcmp(type, "half") == 0)
        say("{\"t\":\"done\",\"ru");
    if (strcmp(type, "hang") == 0 || strcmp(type, "half") == 0)
        for (;;)
            pause();
}

/* Ends when there is something to read. */
static void ignore(void)
{
    struct pollfd in = {.fd = fd, .events = POLLIN};
    while (poll(&in, 1, -1) != 1)
        continue;
    exit(1);
}

static void keep_a_child(void)
{
    if (fork() != 0)
        return;
    for (;;)
        pause();
}

static void print(const run *r)
{
    printf("to stdout %s\n", r->id);
    fflush(stdout);
}

static void tell(const run *r)
{
    say("{\"t\":\"progress\",\"run\":%ld,\"percent\":40,\"note\":\"row 17\"}\n",
        r->number);
    say("{\"t\":\"checkpoint\",\"run\":%ld,\"n\":2}\n17", r->number);
    say("{\"t\":\"log\",\"run\":%ld,\"n\":6}\nlogged", r->number);
}

/* True: it has had its verdict. */
static bool say_more(const run *r)
{
    char directory[256];
    const char *type = r->type;
    if (strcmp(type, "big") == 0) {
        char *body = calloc(BIG, 1);
        say("{\"t\":\"done\",\"run\":%ld,\"n\":%d}\n", r->number, (int)BIG);
        put(body, BIG);
        free(body);
    } else if (strcmp(type, "text") == 0) {
        say("{\"t\":\"done\",\"run\":%ld,\"json\":true,\"n\":2}\n{]", r->number);
    } else if (strcmp(type, "env") == 0) {
        const char *value = getenv(r->payload);
        done(r, value == NULL ? "(none)" : value);
    } else if (strcmp(type, "cwd") == 0) {
        done(r, getcwd(directory, sizeof directory));
    } else if (strcmp(type, "dead") == 0 || strcmp(type, "release") == 0 ||
               strcmp(type, "cancel") == 0) {
        print(r);
        say("{\"t\":\"%s\",\"run\":%ld,\"error\":\"so it says\"}\n", type, r->number);
    } else if (strcmp(type, "echo") == 0 || strcmp(type, "tell") == 0) {
        say("{\"t\":\"done\",\"run\":%ld,\"n\":%ld}\n", r->number, r->n);
        put(r->payload, (size_t)r->n);
    } else {
        return false;
    }
    return true;
}

static void act(const run *r)
{
    const char *type = r->type;
    break_out(r);
    if (say_more(r))
        return;
    if (strcmp(type, "print") == 0) {
        print(r);
        fprintf(stderr, "to stderr %s\n", r->id);
    }
    if (strcmp(type, "fork") == 0 || (strcmp(type, "ignore") == 0 && r->n > 0))
        keep_a_child();
    if (strcmp(type, "grow") == 0) {
        size_t size = (size_t)(int)strtol(r->payload, NULL, 10) << 20;
        static char *grown; /* until its end */
        grown = realloc(grown, size);
        if (grown != NULL)
            memset(grown, 1, size);
    }
    if (strcmp(type, "strange") == 0)
        say("{\"t\":\"dead\",\"run\":%ld,\"error\":\"not mine\"}\n", r->number + 1000);
    done(r, "");
    if (strcmp(type, "twice") == 0)
        say("{\"t\":\"dead\",\"run\":%ld,\"error\":\"again\"}\n", r->number);
    if (strcmp(type, "leave") == 0) {
        say("{\"t\":\"leave\"}\n");
        while (r->n > 0)
            pause();
    }
    if (strcmp(type, "close") == 0) {
        note("close", r->id);
        close(fd);
        for (;;)
            pause();
    }
    if (strcmp(type, "ignore") == 0)
        ignore();
    if (strcmp(type, "die-idle") == 0) {
        pause_ms(20);
        exit((int)strtol(r->payload, NULL, 10));
    }
}

static void on_job(const char *line)
{
    run *r = runs;
    while (r->number != 0)
        r++;
    r->number = number(line, "run");
    text(line, "id", r->id, sizeof r->id);
    text(line, "type", r->type, sizeof r->type);
    text(line, "fence", r->fence, sizeof r->fence);
    snprintf(r->attempt, sizeof r->attempt, "%ld", number(line, "attempt"));
    long n = number(line, "n"), c = number(line, "c");
    r->payload = calloc((size_t)(n + c) + 1, 1);
    take(r->payload, n);
    bool tells = strcmp(r->type, "tell") == 0;
    if (tells && c > 0) {
        take(r->payload, c);
        n = c;
    } else if (c > 0) {
        take(r->payload + n, c);
        r->payload[n] = '\0';
    }
    r->n = n;
    note("begin", r->id);
    note_run("start", r);
    long ms = strcmp(r->type, "sleep") == 0 || strcmp(r->type, "late-exit") == 0 ||
                      strcmp(r->type, "done-crash") == 0
                  ? strtol(r->payload, NULL, 10)
                  : 0;
    if (tells && c == 0)
        tell(r);
    if ((tells && c == 0) || strcmp(r->type, "gentle") == 0 ||
        strcmp(r->type, "deaf") == 0)
        return;
    r->due_ns = now_ns() + (uint64_t)ms * 1000000;
}

static void on_cancel(const char *line)
{
    long which = number(line, "run");
    for (run *r = runs; r < runs + RUNS; r++) {
        if (r->number == 0 || r->number != which)
            continue;
        note("cancel", r->id);
        if (strcmp(r->type, "deaf") == 0)
            continue;
        say("{\"t\":\"retry\",\"run\":%ld,\"error\":\"it was asked to end\"}\n",
            r->number);
        forget(r);
    }
}

static void on_frame(void)
{
    char line[LINE_MAX_SIZE];
    read_line(line);
    if (strstr(line, "\"t\":\"job\"") != NULL)
        on_job(line);
    else if (strstr(line, "\"t\":\"cancel\"") != NULL)
        on_cancel(line);
    else if (strstr(line, "\"t\":\"stop\"") != NULL)
        stopping = true;
    else if (strstr(line, "\"t\":\"ping\"") != NULL)
        say("{\"t\":\"pong\"}\n");
}

/* How long it may sleep for this run. */
static int beat(run *r, uint64_t now)
{
    if (runs_file != NULL && r->beat_ns <= now) {
        note_run("beat", r);
        r->beat_ns = now + (uint64_t)beat_ms * 1000000;
    }
    uint64_t next = runs_file != NULL && r->beat_ns < r->due_ns ? r->beat_ns : r->due_ns;
    return next <= now ? 0 : (int)((next - now) / 1000000 + 1);
}

/* It looks again in a moment. */
static bool waits_for_file(run *r, uint64_t now)
{
    if (strcmp(r->type, "file") != 0 || access(r->payload, F_OK) == 0)
        return false;
    r->due_ns = now + LOOK_MS * 1000000;
    return true;
}

/* Acts on what is due; how long to wait for the next one; -1: for ever. */
static int do_what_is_due(void)
{
    int wait = -1;
    bool busy = false;
    for (run *r = runs; r < runs + RUNS; r++) {
        uint64_t now = now_ns();
        if (r->number != 0 && r->due_ns != 0 && r->due_ns <= now &&
            !waits_for_file(r, now)) {
            act(r);
            forget(r);
        } else if (r->number != 0 && r->due_ns != 0) {
            int ms = beat(r, now);
            wait = wait < 0 || ms < wait ? ms : wait;
        }
        busy = busy || r->number != 0;
    }
    if (stopping && !busy) {
        note("stop", "-");
        exit(0);
    }
    return wait;
}

/* Its first line; what is in `text` stays if there is no such file. */
static void read_file(const char *path, char *text, size_t size)
{
    FILE *file = path == NULL ? NULL : fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(text, (int)size, file) == NULL)
        text[0] = '\0';
    fclose(file);
}

/* behind: further frames, in the same write. */
static void say_ready(const char *behind)
{
    char types[1024], line[LINE_MAX_SIZE / 2], members[256] = "", schedules[1024] = "";
    snprintf(types, sizeof types, "%s", all_types);
    read_file(types_file, types, sizeof types);
    read_file(members_file, members, sizeof members);
    read_file(schedules_file, schedules, sizeof schedules);
    int n = snprintf(line, sizeof line,
                     "{\"t\":\"ready\",\"v\":%ld,\"client\":\"test 1\",\"parallel\":%ld,"
                     "\"types\":[",
                     version, parallel);
    const char *comma = "";
    char *rest;
    for (char *type = strtok_r(types, " \n", &rest); type != NULL;
         type = strtok_r(NULL, " \n", &rest)) {
        n += snprintf(line + n, sizeof line - (size_t)n, "%s{\"type\":\"%s\"", comma,
                      type);
        if (timeout_ms > 0)
            n += snprintf(line + n, sizeof line - (size_t)n, ",\"timeout\":%ld",
                          timeout_ms);
        n += snprintf(line + n, sizeof line - (size_t)n, "%s}", members);
        comma = ",";
    }
    say("%s],\"schedules\":[%s]}\n%s", line, schedules, behind);
}

static void start(void)
{
    char how[64] = "";
    read_file(start_file, how, sizeof how);
    note("start", "-");
    pause_ms(ready_after_ms);
    if (strncmp(how, "exit ", 5) == 0) {
        fprintf(stderr, "no module named app\n");
        exit((int)strtol(how + 5, NULL, 10));
    }
    while (strncmp(how, "never", 5) == 0)
        pause();
    say_ready(strncmp(how, "early", 5) == 0 ? "{\"t\":\"done\",\"run\":1}\n" : "");
    if (strncmp(how, "twice", 5) == 0)
        say_ready("");
    while (strncmp(how, "unread", 6) == 0)
        pause();
    if (strncmp(how, "ignore", 6) == 0)
        ignore();
}

static void read_arguments(char **argv)
{
    for (; *argv != NULL; argv++) {
        char *value = strchr(*argv, '=');
        value = value == NULL ? *argv : value + 1;
        if (strncmp(*argv, "log=", 4) == 0)
            log_file = value;
        else if (strncmp(*argv, "runs=", 5) == 0)
            runs_file = value;
        else if (strncmp(*argv, "types=", 6) == 0)
            types_file = value;
        else if (strncmp(*argv, "start=", 6) == 0)
            start_file = value;
        else if (strncmp(*argv, "members=", 8) == 0)
            members_file = value;
        else if (strncmp(*argv, "schedules=", 10) == 0)
            schedules_file = value;
        else if (strncmp(*argv, "parallel=", 9) == 0)
            parallel = strtol(value, NULL, 10);
        else if (strncmp(*argv, "version=", 8) == 0)
            version = strtol(value, NULL, 10);
        else if (strncmp(*argv, "ready-after=", 12) == 0)
            ready_after_ms = strtol(value, NULL, 10);
        else if (strncmp(*argv, "timeout=", 8) == 0)
            timeout_ms = strtol(value, NULL, 10);
        else if (strncmp(*argv, "beat=", 5) == 0)
            beat_ms = strtol(value, NULL, 10);
        else if (strcmp(*argv, "plain") == 0)
            plain = true;
        else if (strcmp(*argv, "pieces") == 0)
            in_pieces = true;
        else
            exit(64);
    }
}

static void on_signal(int which)
{
    (void)which; /* it only says that there is something to read */
}

/* -1: there is none, or nobody takes it. */
static int open_socket(void)
{
    const char *name = getenv("HOLDFAST_FD"), *path = getenv("HOLDFAST_SOCKET");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (name != NULL)
        return (int)strtol(name, NULL, 10);
    int joined = path == NULL ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path == NULL ? "" : path);
    if (joined >= 0 && connect(joined, (const struct sockaddr *)&at, sizeof at) != 0)
        return -1;
    return joined;
}

int main(int argc, char **argv)
{
    (void)argc;
    fd = open_socket();
    if (fd < 0)
        return 64;
    read_arguments(argv + 1);
    if (!plain) {
        const struct sigaction action = {.sa_handler = on_signal};
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGUSR2, &action, NULL);
    }
    start();
    for (;;) {
        struct pollfd in = {.fd = fd, .events = POLLIN};
        int wait = do_what_is_due();
        if (poll(&in, 1, wait) > 0)
            on_frame();
    }
}
