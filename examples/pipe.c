/* pipe.c - a program of handlers without a library: it speaks the protocol of
 * docs/pipe.md. */
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void run_job(FILE *out, const json_t *job, const char *payload, size_t n)
{
    long long run = json_integer_value(json_object_get(job, "run"));
    if (strcmp(json_string_value(json_object_get(job, "type")), "sleep") == 0)
        for (long ms = strtol(payload, NULL, 10); ms > 0; ms -= 10)
            (void)poll(NULL, 0, 10);
    if (n > 65536)
        fprintf(out, "{\"t\":\"dead\",\"run\":%lld,\"error\":\"result: too long\"}\n",
                run);
    else if (fprintf(out, "{\"t\":\"done\",\"run\":%lld,\"n\":%zu}\n", run, n) > 0)
        (void)fwrite(payload, 1, n, out);
}

int main(void)
{
    char *number = getenv("HOLDFAST_FD"), *version = getenv("HOLDFAST_PIPE"),
         *line = NULL, *rest = NULL;
    int status = -1, fd = number == NULL ? -1 : (int)strtol(number, NULL, 10);
    version = version == NULL ? NULL : strtok_r(version, " ", &rest);
    while (version != NULL && strcmp(version, "1") != 0)
        version = strtok_r(NULL, " ", &rest);
    if (version == NULL || send(fd, "", 0, MSG_NOSIGNAL) != 0)
        return fputs("expected a socket HOLDFAST_FD, and 1 in HOLDFAST_PIPE\n", stderr),
               78;
    (void)(unsetenv("HOLDFAST_FD") + unsetenv("HOLDFAST_PIPE") +
           fcntl(fd, F_SETFD, FD_CLOEXEC));
    (void)signal(SIGTERM, SIG_IGN); /* both say only: read the socket */
    (void)signal(SIGINT, SIG_IGN);
    FILE *in = fdopen(fd, "r"), *out = fdopen(fcntl(fd, F_DUPFD_CLOEXEC, 3), "w");
    (void)dprintf(fd, "{\"t\":\"ready\",\"v\":1,\"types\":[{\"type\":\"echo\"},"
                      "{\"type\":\"sleep\"}]}\n");
    for (size_t size = 0; status < 0 && getline(&line, &size, in) > 0; fflush(out)) {
        json_t *frame = json_loads(line, 0, NULL);
        const char *t = json_string_value(json_object_get(frame, "t"));
        size_t n = (size_t)json_integer_value(json_object_get(frame, "n"));
        size_t c = (size_t)json_integer_value(json_object_get(frame, "c"));
        char *bytes = calloc(n + c + 1, 1);
        if (bytes == NULL || fread(bytes, 1, n + c, in) != n + c || t == NULL)
            status = 1;
        else if (strcmp(t, "stop") == 0)
            status = 0;
        else if (strcmp(t, "ping") == 0)
            fputs("{\"t\":\"pong\"}\n", out);
        else if (strcmp(t, "job") == 0)
            run_job(out, frame, bytes, n);
        free(bytes);
        json_decref(frame);
    }
    return free(line), status != 0;
}
