/* version.h - the version of Holdfast.
 *
 * HF_VERSION is the version that a program was compiled with. hf_version() is that of the
 * library which runs. */
#ifndef HOLDFAST_VERSION_H
#define HOLDFAST_VERSION_H

#include "holdfast/error.h"

#define HF_VERSION_MAJOR 0
#define HF_VERSION_MINOR 2
#define HF_VERSION_PATCH 0

/* One number that rises with every release: 0.2.0 is 200, 1.2.3 is 10203. */
#define HF_VERSION (HF_VERSION_MAJOR * 10000 + HF_VERSION_MINOR * 100 + HF_VERSION_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library as such a number, and as text in *text (may be NULL):
 * "0.2.0", static. From any thread. */
HF_API int hf_version(const char **text);

#ifdef __cplusplus
}
#endif

#endif
