/* base.h - what every file may lean on: assertions, counting, the enclosing struct. */
#ifndef HF_BASE_BASE_H
#define HF_BASE_BASE_H

#include <stddef.h>

/* A programming error, never a runtime one: on in all builds, says where, and aborts. */
#define HF_ASSERT(cond) ((cond) ? (void)0 : hf_assert_failed(#cond, __FILE__, __LINE__))
#define HF_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HF_CONTAINER(ptr, type, member)                                                  \
    ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

_Noreturn void hf_assert_failed(const char *cond, const char *file, int line);

#endif
