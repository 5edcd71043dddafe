/* parent.h - a child that ends with its parent. */
#ifndef HF_BASE_PARENT_H
#define HF_BASE_PARENT_H

#include <stdbool.h>
#include <sys/types.h>

/* In a child, between fork and exec. The kernel sends it KILL when the thread that forked
 * it ends: that thread must outlive the child. False: `parent` has ended already, and the
 * child must not go on. Holds across an exec, but not across one that gains privileges
 * (sudo), and not for children of the child. Async-signal-safe. */
bool hf_end_with_parent(pid_t parent);

#endif
