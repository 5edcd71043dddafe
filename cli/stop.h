/* stop.h - the signals that ask a command to stop: INT (^C), TERM and HUP.
 *
 * A long command ends what it has begun, reports how far it came, and returns
 * hf_stop_code(). A second signal ends the command at once. A signal that was ignored
 * when the command began stays ignored, as under nohup. */
#ifndef HF_CLI_STOP_H
#define HF_CLI_STOP_H

#include <stdbool.h>

/* From now on the first of these signals is only noted, until hf_stop_end(). */
void hf_stop_start(void);
void hf_stop_end(void);

/* The signal that came since hf_stop_start(); 0: none. */
int hf_stop_asked(void);
/* Its name; "" for 0. */
const char *hf_stop_name(void);
/* 128 + N after signal N, else `code`. main.c then ends the command by the signal. */
int hf_stop_code(int code);

/* Waits until `fd` can be read. False: a signal came instead. */
bool hf_stop_until_readable(int fd);
/* Waits so long. False: a signal came instead, or nothing reads standard output now. */
bool hf_stop_pause(int ms);

#endif
