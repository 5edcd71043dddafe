/* service.c - a service with a producer in it: service [URL].
 *
 * One producer serves the whole process, from as many threads as there are; what they
 * enqueue at the same time travels together. A job that was answered with HF_OK is in
 * Redis. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/producer.h>

/* What a new user makes: a mail at once, another one later, and a report. */
static hf_err welcome(hf_producer *producer, const char *user, const char *address)
{
    static const char report[] = "mails sent this week";
    char first[80], detail[HF_DETAIL_SIZE];
    snprintf(first, sizeof first, "welcome-%.40s", user);
    const size_t n = strlen(address);
    const hf_job jobs[] = {
        /* Its id is chosen here: while the job exists, the same request again changes
           nothing. */
        {HF_JOB_INIT, .type = "email.send", .id = first, .payload = address,
         .payload_len = n},
        {HF_JOB_INIT, .type = "email.send", .payload = address, .payload_len = n,
         .delay_ms = 300},
        {HF_JOB_INIT, .type = "report.make", .payload = report,
         .payload_len = sizeof report - 1},
    };
    enum { N = sizeof jobs / sizeof jobs[0] };
    /* The size in the first result counts for all. */
    hf_enqueue_result results[N] = {{HF_ENQUEUE_RESULT_INIT}};

    hf_err err = hf_enqueue_wait(producer, jobs, N, results, 0, detail);
    if (err != HF_OK) {
        fprintf(stderr, "service: %s: %s\n", hf_err_text(err), detail);
        return err;
    }
    for (size_t i = 0; i < N; i++)
        printf("%s %s %s\n", jobs[i].type, results[i].id,
               results[i].err == HF_EXISTS ? "existed" : "accepted");
    return HF_OK;
}

int main(int argc, char **argv)
{
    char detail[HF_DETAIL_SIZE];
    hf_producer *producer;
    const char *url = argc > 1 ? argv[1] : getenv("REDIS_URL");

    const hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT,
                                   .server = HF_SERVER(.url = url)};
    hf_err err = hf_producer_open(&producer, &opts, detail);
    if (err != HF_OK) {
        fprintf(stderr, "service: %s\n", detail);
        return EXIT_FAILURE;
    }
    err = welcome(producer, "ada", "ada@example.com");
    if (err == HF_OK)
        err = welcome(producer, "ada", "ada@example.com");
    hf_producer_close(producer, NULL, NULL); /* what was taken is sent before */
    return err == HF_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
