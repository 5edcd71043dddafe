/* schedule_fixture.h - the schedules of the queue "q" of a queue fixture that has an
 * administrator. */
#ifndef HF_TESTS_SCHEDULE_FIXTURE_H
#define HF_TESTS_SCHEDULE_FIXTURE_H

#include "tests/support/queue_fixture.h"

/* Writes a schedule as a command does; its type is "t" where none is given. */
void hf_schedule_fixture_put(hf_queue_fixture *q, hf_schedule schedule);
hf_schedule_info hf_schedule_fixture_info(hf_queue_fixture *q, const char *id);
/* As if its next tick were at next_ms. */
void hf_schedule_fixture_set_next(hf_queue_fixture *q, const char *id, int64_t next_ms);
/* How many jobs the queue has ever accepted. */
long long hf_schedule_fixture_enqueued(hf_queue_fixture *q);

#endif
