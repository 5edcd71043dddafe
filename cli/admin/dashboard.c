/* dashboard.c - `holdfast dashboard` and `holdfast exporter`, one program of its own
 * (dashboard/main.c). */
#include "cli/helper_program.h"

static int start(const hf_cli *cli)
{
    return hf_helper_program(cli, "holdfast-dashboard");
}

int hf_cmd_dashboard(hf_cli *cli)
{
    return start(cli);
}

int hf_cmd_exporter(hf_cli *cli)
{
    return start(cli);
}
