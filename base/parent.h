/* parent.h - what passes between a parent and its children: a child that ends with its
 * parent, and how a child ended. */
#ifndef HF_BASE_PARENT_H
#define HF_BASE_PARENT_H

#include <stdbool.h>
#include <sys/types.h>

/* In a child. The kernel sends it the signal when the thread that forked it ends: that
 * thread must outlive the child, or the signal comes again for each further thread of the
 * parent that ends. False: `parent` has ended already, and the child must
 * not go on. Holds across an exec, but not across one that gains privileges (sudo), and
 * not for children of the child. Async-signal-safe. */
bool hf_end_with_parent(pid_t parent, int signal);

/* A process inherits an ignored SIGCHLD across its exec. The kernel then reaps its
 * children itself, and how they ended is lost. */
bool hf_children_are_ignored(void);
/* Of the whole process: only for a main program, before it has threads. */
void hf_heed_children(void);

#endif
