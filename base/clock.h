/* clock.h - the two clocks: CLOCK_BOOTTIME for every deadline (it runs during suspend),
 * and the wall clock for times that people read. */
#ifndef HF_BASE_CLOCK_H
#define HF_BASE_CLOCK_H

#include <stdint.h>

#define HF_MS_NS UINT64_C(1000000)

uint64_t hf_boot_ns(void); /* ns since boot */
int64_t hf_wall_ms(void);  /* Unix time in ms */
int64_t hf_wall_us(void);  /* and in microseconds */

/* Lets a timerfd of CLOCK_BOOTTIME fire at this time, at once if it has passed.
 * UINT64_MAX: never. */
void hf_timer_set(int fd, uint64_t at_ns);

#endif
