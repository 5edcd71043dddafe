/* machine.h - identifies this machine until it boots again. */
#ifndef HF_BASE_MACHINE_H
#define HF_BASE_MACHINE_H

enum { HF_MACHINE_SIZE = 96 };

/* The same text in all processes that share one CLOCK_BOOTTIME: the kernel's boot id, and
 * what a time namespace adds to that clock, if anything. "" if the kernel does not say.
 */
void hf_machine_id(char out[HF_MACHINE_SIZE]);

#endif
