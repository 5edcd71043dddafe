/* authorities.h - where a system keeps the certificates of the authorities that it
 * trusts.
 *
 * OpenSSL is compiled with one place of its own. That of another distribution is another
 * one, and one binary may run on all of them. */
#ifndef HF_REDIS_AUTHORITIES_H
#define HF_REDIS_AUTHORITIES_H

#include <limits.h>
#include <stdbool.h>

/* The bundle of this system, where OpenSSL's own `file` and `dir` hold nothing. False:
 * they do, or there is no bundle. `root` precedes every path ("" but in tests). */
bool hf_authorities_find(const char *root, const char *file, const char *dir,
                         char out[PATH_MAX]);

#endif
