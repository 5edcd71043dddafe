/* signal_name.h - signals for people. */
#ifndef HF_BASE_SIGNAL_NAME_H
#define HF_BASE_SIGNAL_NAME_H

/* "SEGV"; NULL: one that seldom ends a process. */
const char *hf_signal_name(int sig);

#endif
