/* holdfast.h - everything, in reading order. */
#ifndef HOLDFAST_HOLDFAST_H
#define HOLDFAST_HOLDFAST_H

/* IWYU pragma: begin_exports */
#include "holdfast/admin.h"
#include "holdfast/error.h"
#include "holdfast/job.h"
#include "holdfast/job_wait.h"
#include "holdfast/lock.h"
#include "holdfast/lock_set.h"
#include "holdfast/minder.h"
#include "holdfast/producer.h"
#include "holdfast/runs.h"
#include "holdfast/schedule.h"
#include "holdfast/server.h"
#include "holdfast/struct.h"
#include "holdfast/tls.h"
#include "holdfast/trace.h"
#include "holdfast/version.h"
#include "holdfast/worker.h"
/* IWYU pragma: end_exports */

#endif
