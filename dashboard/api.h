/* api.h - the answers of the API below api/v1, by subject. Each is an hf_ask_run. */
#ifndef HF_DASHBOARD_API_H
#define HF_DASHBOARD_API_H

#include "dashboard/ask.h"

/* api_queue.c: queues/Q, its why, history and jobs */
hf_err hf_api_queue(hf_query *ask, hf_reader *r);
hf_err hf_api_queue_why(hf_query *ask, hf_reader *r);
hf_err hf_api_queue_history(hf_query *ask, hf_reader *r);
hf_err hf_api_queue_jobs(hf_query *ask, hf_reader *r);

/* api_job.c: jobs/ID, its why, logs, result and payload; running; find */
hf_err hf_api_job(hf_query *ask, hf_reader *r);
hf_err hf_api_job_why(hf_query *ask, hf_reader *r);
hf_err hf_api_job_logs(hf_query *ask, hf_reader *r);
hf_err hf_api_job_log_news(hf_query *ask, hf_reader *r); /* a topic */
hf_err hf_api_job_result(hf_query *ask, hf_reader *r);
hf_err hf_api_job_payload(hf_query *ask, hf_reader *r);
hf_err hf_api_job_running(hf_query *ask, hf_reader *r);
hf_err hf_api_job_find(hf_query *ask, hf_reader *r);

/* api_stats.c */
hf_err hf_api_stats(hf_query *ask, hf_reader *r);

/* api_dead.c: dead/groups */
hf_err hf_api_dead_groups(hf_query *ask, hf_reader *r);

/* api_tasks.c: tasks, tasks/T, its stop; dead/retry, dead/purge */
hf_err hf_api_tasks(hf_query *ask, hf_reader *r);
hf_err hf_api_tasks_one(hf_query *ask, hf_reader *r);
hf_err hf_api_tasks_stop(hf_query *ask, hf_reader *r);
hf_err hf_api_tasks_retry(hf_query *ask, hf_reader *r);
hf_err hf_api_tasks_purge(hf_query *ask, hf_reader *r);

/* api_other.c: about, schedules, locks, lock */
hf_err hf_api_other_about(hf_query *ask, hf_reader *r);
hf_err hf_api_other_schedules(hf_query *ask, hf_reader *r);
hf_err hf_api_other_locks(hf_query *ask, hf_reader *r);
hf_err hf_api_other_lock(hf_query *ask, hf_reader *r);

/* api_redis.c: redis */
hf_err hf_api_redis(hf_query *ask, hf_reader *r);

/* changes.c */
hf_err hf_changes_pause(hf_query *ask, hf_reader *r);
hf_err hf_changes_resume(hf_query *ask, hf_reader *r);
hf_err hf_changes_limit(hf_query *ask, hf_reader *r);
hf_err hf_changes_purge(hf_query *ask, hf_reader *r);
hf_err hf_changes_job_retry(hf_query *ask, hf_reader *r);
hf_err hf_changes_job_cancel(hf_query *ask, hf_reader *r);
hf_err hf_changes_job_edit(hf_query *ask, hf_reader *r);
hf_err hf_changes_job_delete(hf_query *ask, hf_reader *r);
hf_err hf_changes_schedule_run(hf_query *ask, hf_reader *r);
hf_err hf_changes_schedule_pause(hf_query *ask, hf_reader *r);
hf_err hf_changes_schedule_resume(hf_query *ask, hf_reader *r);
hf_err hf_changes_lock_revoke(hf_query *ask, hf_reader *r);
hf_err hf_changes_lock_release(hf_query *ask, hf_reader *r);

#endif
