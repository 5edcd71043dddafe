/* reasons.c - see reasons.h. */
#include "dashboard/reasons.h"

#include "cli/jobs/job_why.h"
#include "cli/out.h"
#include "seen/reason_read.h"

static json_t *texts(hf_reader *r, const hf_job_why *why, const hf_reason *reasons,
                     size_t n)
{
    char text[HF_REASON_TEXT_SIZE], remedy[HF_REASON_COMMAND_SIZE];
    hf_reason_read read;
    json_t *list = json_array();
    hf_reason_read_for(r->admin, why, reasons, n, &read);
    const hf_reason_facts facts = hf_reason_facts_of(why, &read, why->job->queue);
    for (size_t i = 0; i < n && list != NULL; i++) {
        (void)hf_reason_remedy(&facts, reasons[i], remedy);
        (void)json_array_append_new(
            list,
            json_pack("{s:s, s:o, s:o}", "word", hf_reason_word(reasons[i]), "text",
                      hf_out_text(hf_reason_text(&facts, reasons[i], text)), "command",
                      remedy[0] == '\0' ? json_null() : hf_out_text(remedy)));
    }
    return list;
}

json_t *hf_reasons_json(hf_reader *r, const hf_job_why *why)
{
    hf_reason reasons[HF_REASONS];
    size_t n = hf_why_reasons(why, r->opts->poison, reasons);
    return texts(r, why, reasons, n);
}

json_t *hf_reasons_whole_json(hf_reader *r, const hf_job_why *why)
{
    hf_reason reasons[HF_REASONS];
    size_t n = hf_why_reasons(why, r->opts->poison, reasons);
    json_t *object = hf_job_why_json(why, reasons, n);
    (void)json_object_set_new(object, "texts", texts(r, why, reasons, n));
    return object;
}
