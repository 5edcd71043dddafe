/* signal_name.c - base/signal_name.h. sigabbrev_np() is not in every libc. */
#include "base/signal_name.h"

#include <signal.h>
#include <stddef.h>

#include "base/base.h"

const char *hf_signal_name(int sig)
{
    static const struct {
        int sig;
        const char *name;
    } names[] = {{SIGSEGV, "SEGV"}, {SIGABRT, "ABRT"}, {SIGKILL, "KILL"},
                 {SIGTERM, "TERM"}, {SIGBUS, "BUS"},   {SIGILL, "ILL"},
                 {SIGFPE, "FPE"},   {SIGINT, "INT"},   {SIGHUP, "HUP"},
                 {SIGQUIT, "QUIT"}, {SIGPIPE, "PIPE"}, {SIGXCPU, "XCPU"},
                 {SIGSYS, "SYS"},   {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}};
    for (size_t i = 0; i < HF_COUNT(names); i++)
        if (names[i].sig == sig)
            return names[i].name;
    return NULL;
}
