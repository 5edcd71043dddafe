/* helper_path.c - see helper_path.h. */
#include "cli/helper_path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/detail.h"

/* In the order in which they are tried: beside it, as after a build, and installed. */
static const char *const folders[] = {"", HOLDFAST_LIBEXEC "/"};

bool hf_helper_path(const char *program, char out[PATH_MAX])
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return false;
    self[n] = '\0';
    char *end = strrchr(self, '/');
    if (end == NULL)
        return false;
    end[1] = '\0';
    for (size_t i = 0; i < HF_COUNT(folders); i++) {
        int len = snprintf(out, PATH_MAX, "%s%s%s", self, folders[i], program);
        if (len > 0 && len < PATH_MAX && access(out, F_OK) == 0)
            return true;
    }
    return false;
}

const char *hf_helper_advice(void)
{
#ifdef HOLDFAST_STATIC
    return "install the package holdfast-dashboard and use /usr/bin/holdfast instead of "
           "this static command";
#else
    return "install the package holdfast-dashboard";
#endif
}

bool hf_helper_needed(const char *key, const char *program, char out[PATH_MAX],
                      char detail[HF_DETAIL_SIZE])
{
    const bool found = hf_helper_path(program, out);
    if (!found)
        (void)hf_say(detail, HF_SYSTEM, "%s needs %s: %s", key, program,
                     hf_helper_advice());
    return found;
}
