/* shares_stubs.c - the parts of the worker that test_shares.c does not look at: their
 * calls do nothing. */
#include "worker/node/sites.h"
#include "worker/outbox.h"
#include "worker/past.h"
#include "worker/pool/supervisors.h"
#include "worker/queues/bundle.h"
#include "worker/queues/queues.h"
#include "worker/queues/shards.h"
#include "worker/report.h"
#include "worker/run/notes.h"
#include "worker/run/result.h"
#include "worker/runner/leader.h"
#include "worker/runner/runner.h"
#include "worker/runner/state.h"
#include "worker/runner/threads.h"
#include "worker/schedules.h"
#include "worker/source/claim.h"
#include "worker/source/readings.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

void hf_past_buried(hf_served *served, size_t n)
{
    (void)served, (void)n;
}

bool hf_cluster_is_plain(const hf_cluster *cluster)
{
    return cluster == NULL;
}

bool hf_site_ready(const hf_site *at)
{
    (void)at;
    return true;
}

bool hf_client_ready(const hf_client *client)
{
    (void)client;
    return true;
}

uint64_t hf_run_identity(const hf_run *run)
{
    (void)run;
    return 1;
}

bool hf_leader_keep_one(hf_worker *worker, hf_run_list *list)
{
    (void)worker, (void)list;
    return false;
}

hf_err hf_peeked_read(const hf_answer *answer, bool *ready, size_t n)
{
    (void)answer, (void)ready, (void)n;
    return HF_CONN;
}

hf_err hf_op_unclaim(hf_client *client, const hf_queue *queue, const char *worker,
                     uint64_t number, hf_answer_cb cb, void *arg)
{
    (void)client, (void)queue, (void)worker, (void)number, (void)cb, (void)arg;
    return HF_CONN;
}

#define NOTHING(name, ...)                                                               \
    void name(__VA_ARGS__)                                                               \
    {                                                                                    \
    }
NOTHING(hf_claimed_buried, const hf_claimed *claimed, size_t i, hf_bytes *id,
        hf_bytes *why)
NOTHING(hf_threads_allow, hf_threads *threads, uint32_t n)
NOTHING(hf_threads_running, hf_threads *threads, void (*fn)(hf_run *, void *), void *arg)
NOTHING(hf_client_flush, hf_client *client)
NOTHING(hf_watchdog_verify, hf_watchdog *watchdog)
NOTHING(hf_site_pause, hf_site *at, hf_err err)
NOTHING(hf_sites_register, hf_worker *worker)
NOTHING(hf_leader_expect, hf_worker *worker)
NOTHING(hf_watchdog_end, hf_watchdog *watchdog, hf_lease *lease)
NOTHING(hf_site_refused, hf_site *at, hf_err err, const char *detail)
NOTHING(hf_report, hf_worker *worker, hf_log_level level, const char *message,
        const hf_log_field *fields, size_t n)
NOTHING(hf_schedules_claimed, hf_served *served, const hf_reply *ticks, int64_t now_ms)
NOTHING(hf_site_clock_read, hf_site *at, int64_t now_ms, uint64_t sent_ns)
NOTHING(hf_trace_begin, hf_run *run)
NOTHING(hf_run_report, hf_worker *worker, hf_run *run, const char *outcome)
NOTHING(hf_report_text, hf_worker *worker, hf_log_level level, const char *message,
        const char *key, const char *text)
NOTHING(hf_outbox_unreadable, hf_run *run)
NOTHING(hf_outbox_no_handler, hf_run *run)
NOTHING(hf_run_choose, hf_run *run)
NOTHING(hf_run_forget, hf_run *run)
NOTHING(hf_leader_close, hf_worker *worker)
NOTHING(hf_leader_run, hf_worker *worker)
NOTHING(hf_leader_turned, hf_worker *worker, bool idle)
NOTHING(hf_blocking_close, hf_blocking *blocking, void (*cb)(void *))
NOTHING(hf_site_confirm_report, hf_site *at, hf_err err, const char *detail)
NOTHING(hf_threads_join, hf_threads *threads)
NOTHING(hf_threads_free, hf_threads *threads)
NOTHING(hf_groups_close, hf_groups *groups)
NOTHING(hf_outbox_back_off, hf_run *run, int64_t delay_ms, const char *text)
NOTHING(hf_supervisors_take, hf_worker *worker)
NOTHING(hf_supervisors_stop, hf_worker *worker)
NOTHING(hf_supervisors_end, hf_worker *worker)
NOTHING(hf_supervisors_close, hf_worker *worker)
NOTHING(hf_supervisors_free, hf_worker *worker)
NOTHING(hf_supervisors_started, hf_worker *worker, void (*fn)(hf_run *run, void *arg),
        void *arg)
NOTHING(hf_supervisors_turn, hf_worker *worker)
NOTHING(hf_supervisors_tick, hf_worker *worker, uint64_t keep_ms)
NOTHING(hf_supervisors_accept, hf_run *run)
NOTHING(hf_supervisors_withdraw, hf_run *run)
NOTHING(hf_supervisors_lose, hf_run *run)
NOTHING(hf_supervisors_cancel, hf_run *run)
NOTHING(hf_supervisors_recall, hf_worker *worker, hf_run_list *out)
NOTHING(hf_programs_close, hf_programs *programs, void (*cb)(void *), void *arg)
NOTHING(hf_run_ask_to_stop, hf_run *run)
NOTHING(hf_run_set_text, hf_run *run, const char *text, size_t len)
NOTHING(hf_notes_on_output, void *run, const char *bytes, size_t len, void *worker)
NOTHING(hf_notes_on_update, void *run, const hf_program_update *update, void *worker)
NOTHING(hf_run_on_line, void *run, int stream, const char *text, size_t len, void *worker)
NOTHING(hf_run_on_denied, void *run, void *worker)
NOTHING(hf_program_end, hf_process *process, uint32_t grace_ms)
NOTHING(hf_program_extend, hf_process *process, uint64_t deadline_ns)

hf_err hf_result_set(hf_run *run, const void *bytes, size_t len, bool is_json)
{
    return HF_OK;
}

void hf_node_back_off(hf_node *node, hf_node_backoff *backoff, hf_err err)
{
}

bool hf_shards_learn(hf_served *served, const char *words)
{
    return false;
}

int64_t hf_server_now(hf_server *server)
{
    return 1;
}

int64_t hf_site_not_after(const hf_site *at)
{
    return 0;
}

void hf_readings_expect(hf_bundle *b)
{
    (void)b;
}

hf_run *hf_run_next_event(hf_worker *worker, unsigned *events)
{
    return NULL;
}

hf_err hf_leader_open(hf_worker *worker, void (*after)(hf_worker *))
{
    return HF_OK;
}

hf_err hf_threads_new(hf_threads **out, uint32_t threads, void (*work)(hf_run *run),
                      void (*returned)(void *arg), void *arg)
{
    return HF_NOMEM;
}

hf_err hf_programs_new(hf_programs **out, struct uv_loop_s *loop, hf_groups *groups,
                       const hf_programs_opts *opts)
{
    return HF_NOMEM;
}

hf_err hf_groups_new(hf_groups **out, struct uv_loop_s *loop, const hf_groups_opts *opts,
                     char detail[HF_DETAIL_SIZE])
{
    return HF_NOMEM;
}

hf_run *hf_run_stand_in(hf_run *run)
{
    return NULL;
}

hf_err hf_supervisors_start(hf_worker *worker, hf_groups *groups)
{
    return HF_NOMEM;
}

bool hf_run_worker_stops(const hf_run *run)
{
    return false;
}

bool hf_supervisors_starting(const hf_worker *worker)
{
    return false;
}

bool hf_supervisors_any_unknown(const hf_worker *worker, int64_t *backoff_ms)
{
    return false;
}

bool hf_supervisors_alive(const hf_worker *worker)
{
    return false;
}

size_t hf_supervisors_slots(const hf_worker *worker)
{
    return 0;
}

size_t hf_supervisors_usable(const hf_worker *worker)
{
    return 0;
}

size_t hf_supervisors_free_slots(const hf_worker *worker)
{
    return 0;
}

size_t hf_supervisors_ahead(const hf_worker *worker)
{
    return 0;
}

size_t hf_supervisors_running(const hf_worker *worker)
{
    return 0;
}

size_t hf_supervisors_waiting(const hf_worker *worker)
{
    return 0;
}

bool hf_groups_ready(const hf_groups *groups)
{
    return false;
}

hf_err hf_programs_start(hf_programs *programs, const hf_program *spec,
                         const hf_program_job *job, hf_program_done_cb done_cb, void *arg,
                         hf_process **out)
{
    return HF_BUSY;
}

void hf_watchdog_add_many(hf_watchdog *watchdog, size_t group, uint32_t ttl_ms,
                          uint64_t sent_ns, bool renew_now, void *const *users,
                          hf_lease **leases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        leases[i] = (hf_lease *)users[i]; /* never looked into */
}

bool hf_lease_lost(const hf_lease *lease)
{
    return false;
}

uint64_t hf_lease_deadline_ns(const hf_lease *lease)
{
    return UINT64_MAX;
}
