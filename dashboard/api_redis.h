/* api_redis.h - what the poller keeps of Redis between two answers of `redis`. */
#ifndef HF_DASHBOARD_API_REDIS_H
#define HF_DASHBOARD_API_REDIS_H

#include "dashboard/ask.h"

typedef struct hf_redis_seen hf_redis_seen;
void hf_api_redis_free(hf_redis_seen *seen);

#endif
