/* payload.c - see payload.h. */
#include "cli/common/payload.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* All of standard input; one byte more than allowed is enough to see that it is too much.
 */
static hf_err read_input(hf_buf *out)
{
    char chunk[16384];
    for (;;) {
        ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return HF_SYSTEM;
        if (n == 0)
            return hf_buf_err(out);
        hf_buf_add(out, chunk, (size_t)n);
        if (hf_buf_err(out) != HF_OK)
            return hf_buf_err(out);
    }
}

int hf_take_payload(const hf_cli *cli, size_t operand, hf_buf *input,
                    const void **payload, size_t *len)
{
    const char *given = hf_argv_operand(cli->args, operand);
    size_t max = (size_t)cli->config->payload_max;
    hf_err err = HF_OK;
    if (given != NULL && strcmp(given, "-") == 0) {
        err = read_input(input);
        *payload = input->len > 0 ? input->data : "";
        *len = input->len;
    } else if (given != NULL) {
        *payload = given;
        *len = strlen(given);
    }
    if (err == HF_SYSTEM)
        return hf_cli_say(cli, HF_EXIT_DATA, "",
                          "expected a payload on standard input, found "
                          "none (%s)",
                          strerror(errno));
    if (err == HF_TOOBIG || *len > max)
        return hf_cli_say(cli, HF_EXIT_DATA,
                          "limits.payload in the configuration raises it",
                          "expected a payload of at most %zu bytes, found more", max);
    return err == HF_OK ? HF_EXIT_OK : hf_cli_fail(cli, err, NULL);
}
