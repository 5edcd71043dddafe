/* nearby.h - waking a thread on the processor where one runs oneself.
 *
 * A thread that is woken goes to an idle processor if there is one, and that one has to
 * wake up first: on a virtual machine this takes longer than all else that is done
 * between the answer to a claim and the handler's start. Who wakes a thread and will
 * sleep soon can have it in his own place instead. */
#ifndef HF_WORKER_NEARBY_H
#define HF_WORKER_NEARBY_H

#include <pthread.h>
#include <stdbool.h>

/* How many processors there are, for hf_nearby_begin(). It is slow. */
long hf_nearby_processors(void);

/* Before a thread that sleeps is woken: ties it to the processor of the caller. After
 * true it has to call hf_nearby_end() as soon as it is awake, before it does anything for
 * others: what it starts would be tied as well. False: it is left alone, because there is
 * one processor, somebody has chosen some for it, or the system does not let us. */
bool hf_nearby_begin(pthread_t sleeper, long processors);
void hf_nearby_end(void);

#endif
