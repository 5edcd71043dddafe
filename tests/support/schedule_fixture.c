/* schedule_fixture.c - see schedule_fixture.h. */
#include "tests/support/schedule_fixture.h"

#include "tests/support/eventually.h"

void hf_schedule_fixture_put(hf_queue_fixture *q, hf_schedule schedule)
{
    char detail[HF_DETAIL_SIZE] = "";
    schedule.size = sizeof schedule;
    schedule.queue = "q";
    schedule.type = schedule.type == NULL ? "t" : schedule.type;
    if (hf_admin_schedule_put(q->admin, &schedule, detail) != HF_OK)
        fail_msg("%s", detail);
}

hf_schedule_info hf_schedule_fixture_info(hf_queue_fixture *q, const char *id)
{
    hf_schedule_info info = {HF_SCHEDULE_INFO_INIT};
    assert_int_equal(hf_admin_schedule(q->admin, "q", id, &info, NULL, NULL), HF_OK);
    return info;
}

void hf_schedule_fixture_set_next(hf_queue_fixture *q, const char *id, int64_t next_ms)
{
    (void)hf_fixture_command(&q->redis, "ZADD hf:{q}:cron_next %lld %s",
                             (long long)next_ms, id);
}

long long hf_schedule_fixture_enqueued(hf_queue_fixture *q)
{
    long long n = hf_queue_fixture_meta(q, "enqueued");
    return n < 0 ? 0 : n;
}
