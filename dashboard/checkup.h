/* checkup.h - what the last look at the data in Redis found, as `holdfast doctor` looks.
 */
#ifndef HF_DASHBOARD_CHECKUP_H
#define HF_DASHBOARD_CHECKUP_H

#include "dashboard/ask.h"

void hf_checkup_free(hf_checkup *checkup);

/* GET doctor: the findings of the last look; POST doctor: looks again, for 2 s at most.
 */
hf_err hf_checkup_get(hf_query *ask, hf_reader *r);
hf_err hf_checkup_look(hf_query *ask, hf_reader *r);

#endif
