/* reader.h - reads from Redis into a model, by <holdfast/admin.h> and what seen/ gathers.
 *
 * One thread reads; another one may draw meanwhile: both hold the lock while they touch
 * the model, and nothing is read under it. */
#ifndef HF_TOP_READER_H
#define HF_TOP_READER_H

#include <pthread.h>
#include <stdatomic.h>

#include "holdfast/lock.h"
#include "seen/running.h"
#include "top/view.h"

enum {
    HF_READER_ANSWER_MS = 2000,
    HF_READER_AWAY_MS = 3000,
    HF_READER_VISIBLE = 200,
    HF_READER_PASTS = 4,
    HF_READER_NODES = 16
};

/* What is looked at, and so what is worth reading. */
typedef struct hf_want {
    hf_top_page page;
    hf_subject subject;
    int64_t interval_ms;
    bool frozen;
    char visible[HF_READER_VISIBLE][HF_ID_SIZE]; /* queues of the Overview */
    size_t n_visible;
} hf_want;

/* When something was read, by hf_boot_ns(); 0: never. */
typedef struct hf_reader_times {
    uint64_t locks_ns, dead_ns, types_ns;
} hf_reader_times;

typedef struct hf_top_reader {
    const hf_server_opts *server; /* borrowed */
    int64_t late_ms, poison;
    hf_admin *admin;       /* NULL: not connected yet */
    hf_lock_client *locks; /* NULL: not needed yet */
    hf_running *running;   /* owned; NULL: not needed yet */
    hf_reader_times at;
    int64_t away_ms;     /* since when there is no answer, by this host's clock; 0: there
                            is one */
    hf_facts_lock *kept; /* owned: the locks that were found last */
    size_t n_kept;
    int64_t dead_sum; /* of the dead jobs that were grouped */
    atomic_bool out_of_memory;
    hf_subject subject;         /* that the model's details and log are about */
    bool (*between)(void *arg); /* of hf_reader_whole() */
    void *arg;
    bool stopped; /* by it */
    struct {
        char place[HF_FACTS_PLACE];
        int64_t since_ms;
    } silent[HF_READER_NODES]; /* nodes of a cluster, and since when */
    hf_log_place log_place;
    uint64_t log_fence; /* of the run whose log was read last */
    hf_buf log;         /* owned: what was read of it */
    char detail[HF_DETAIL_SIZE];

    pthread_mutex_t mutex;
    hf_model model; /* under the mutex */
} hf_top_reader;

void hf_reader_init(hf_top_reader *reader, const hf_server_opts *server, int64_t late_ms,
                    int64_t poison);
void hf_reader_done(hf_top_reader *reader);

/* Reads everything once, and judges it. `between` is called before each queue, as of
 * hf_gather_opts. */
void hf_reader_whole(hf_top_reader *reader, const hf_want *want,
                     bool (*between)(void *arg), void *arg);

/* Reads what the page shows beside that: a few requests, among them the histories of at
 * most HF_READER_PASTS queues. */
void hf_reader_page(hf_top_reader *reader, const hf_want *want);

/* Makes the change, and notes in the model what came of it. */
void hf_reader_change(hf_top_reader *reader, const hf_change *change);

/* Connects if need be. False: there is no connection, and that is in the model. */
bool hf_reader_connect(hf_top_reader *reader);

/* Whether a call that is about all of Redis was answered. Else that is noted, in time
 * also in the model. */
bool hf_reader_heard(hf_top_reader *reader, hf_err err);

#endif
