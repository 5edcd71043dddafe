/* structs.h - structs that grow (holdfast/struct.h): a caller's struct, which may be
 * older and smaller or newer and larger, becomes one of ours, and the other way. */
#ifndef HF_BASE_STRUCTS_H
#define HF_BASE_STRUCTS_H

#include <stddef.h>

#include "holdfast/error.h"

/* Copies `theirs` into `ours`, a struct of `size` bytes that begins with its size. Fields
 * that an older caller does not know are zero; NULL is a struct of zeros. HF_INVALID:
 * `theirs` has no size, or a field is set that is not in ours; then `detail` (may be
 * NULL) names the struct, and *ours is not to be used. */
HF_MUSTCHECK hf_err hf_struct_in(void *ours, size_t size, const void *theirs,
                                 const char *name, char detail[HF_DETAIL_SIZE]);

/* The same for an array of n, whose elements have the size of the first. *ours is
 * `theirs` itself where the sizes are equal, else an allocation in *copy, which the
 * caller frees; *copy is NULL without one. HF_INVALID as above, also for elements of
 * different sizes; HF_NOMEM. */
HF_MUSTCHECK hf_err hf_structs_in(const void **ours, void **copy, size_t size,
                                  const void *theirs, size_t n, const char *name,
                                  char detail[HF_DETAIL_SIZE]);

/* Whether `theirs` can be filled: HF_INVALID when it has no size. */
HF_MUSTCHECK hf_err hf_struct_can_fill(const void *theirs, const char *name,
                                       char detail[HF_DETAIL_SIZE]);
/* Fills it: as much of `ours` as fits, and zeros beyond. Its size stays. */
void hf_struct_fill(void *theirs, const void *ours, size_t size);

#endif
