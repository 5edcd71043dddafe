/* top.c - `holdfast top`, a program of its own (top/main.c). */
#include "cli/helper_program.h"

int hf_cmd_top(hf_cli *cli)
{
    return hf_helper_program(cli, "holdfast-top");
}
