/* tracing.c - see tracing.h. */
#include "cli/common/tracing.h"

#include <dlfcn.h>
#include <limits.h>

#include "base/detail.h"
#include "cli/helper_path.h"
#include "holdfast/version.h"
#include "trace/module.h"

static int unusable(char *detail, const char *why)
{
    (void)hf_say(detail, HF_CONFIG, "tracing needs " HF_TRACE_FILE ": %s: %s",
                 hf_helper_advice(), why);
    return HF_EXIT_UNAVAILABLE;
}

bool hf_tracing_is_there(char detail[HF_DETAIL_SIZE])
{
    char path[PATH_MAX];
    return hf_helper_needed("tracing", HF_TRACE_FILE, path, detail);
}

/* It stays loaded: its libraries have work to do when the process ends. */
static int load(const hf_trace_module **out, char *detail)
{
    char path[PATH_MAX];
    if (!hf_helper_needed("tracing", HF_TRACE_FILE, path, detail))
        return HF_EXIT_UNAVAILABLE;
    void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const hf_trace_module *module = file == NULL ? NULL : dlsym(file, HF_TRACE_SYMBOL);
    if (module == NULL)
        return unusable(detail, dlerror());
    if (module->version != HF_VERSION)
        return unusable(detail, "it has another version than this command");
    *out = module;
    return HF_EXIT_OK;
}

int hf_tracing_open(hf_tracing *out, const hf_config *config,
                    void (*on_loss)(uint64_t dropped, const char *why, void *arg),
                    void *arg, char detail[HF_DETAIL_SIZE])
{
    *out = (hf_tracing){.tracer = {HF_TRACER_INIT}};
    if (config->tracing_endpoint == NULL)
        return HF_EXIT_OK;
    int code = load(&out->module, detail);
    if (code != HF_EXIT_OK)
        return code;
    const hf_trace_opts opts = {.endpoint = config->tracing_endpoint,
                                .headers_file = config->tracing_headers_file,
                                .gzip =
                                    config->tracing_compression == HF_COMPRESSION_GZIP,
                                .service = "holdfast",
                                .on_loss = on_loss,
                                .arg = arg};
    hf_err err = out->module->open(&out->sender, &opts, detail);
    if (err != HF_OK)
        return (int)hf_exit_code(err);
    out->tracer.on_span = out->module->on_span;
    out->tracer.dropped = out->module->dropped;
    out->tracer.arg = out->sender;
    out->tracer.sample = config->tracing_sample;
    out->tracer.link = (hf_trace_link)config->tracing_link;
    return HF_EXIT_OK;
}

const hf_tracer *hf_tracing_tracer(const hf_tracing *tracing)
{
    return tracing->sender == NULL ? NULL : &tracing->tracer;
}

void hf_tracing_close(hf_tracing *tracing)
{
    if (tracing->sender != NULL)
        tracing->module->close(tracing->sender, HF_TRACING_END_MS);
    tracing->sender = NULL;
}
