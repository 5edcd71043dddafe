/* hf-enqueue-many.c - hf-enqueue-many URL N: N jobs in one call of the C interface.
 * Prints the name of the answer and its detail; ends with 0 only when they were accepted.
 */
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/producer.h"

int main(int argc, char **argv)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_producer *producer = NULL;
    size_t n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    hf_job *jobs = calloc(n + 1, sizeof *jobs);
    if (n == 0 || jobs == NULL) {
        free(jobs);
        return 2;
    }
    for (size_t i = 0; i < n; i++)
        jobs[i] = (hf_job){HF_JOB_INIT, .type = "work", .payload = "", .payload_len = 0};
    hf_err err = hf_producer_open(
        &producer,
        &(hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = HF_SERVER(.url = argv[1])},
        detail);
    if (err == HF_OK)
        err = hf_enqueue_wait(producer, jobs, n, NULL, 0, detail);
    hf_producer_close(producer, NULL, NULL);
    free(jobs);
    printf("%s %s\n", hf_err_name(err), detail);
    return err == HF_OK ? 0 : 1;
}
