// What a program in C++11 does with the installed library: the same as consumer.c.
#include <holdfast/holdfast.h>

#include <cstdio>
#include <string>

namespace {

struct Failure {
    hf_err err;
    std::string detail;
};

void must(hf_err err, const char *detail)
{
    if (err != HF_OK)
        throw Failure{err, detail};
}

extern "C" hf_verdict greet(hf_run *run, void *arg)
{
    std::size_t len;
    const char *name = static_cast<const char *>(hf_run_payload(run, &len));
    std::printf("%s runs hello %s\n", hf_run_id(run), std::string(name, len).c_str());
    ++*static_cast<int *>(arg);
    return HF_VERDICT_DONE;
}

void enqueue(const char *url)
{
    char detail[HF_DETAIL_SIZE] = "";
    hf_server_opts server = {HF_SERVER_OPTS_INIT};
    server.url = url;
    hf_producer_opts opts = {HF_PRODUCER_OPTS_INIT};
    opts.server = &server;
    hf_producer *producer;
    must(hf_producer_open(&producer, &opts, detail), detail);
    const std::string payload = "Grace";
    hf_job job = {HF_JOB_INIT};
    job.queue = "install";
    job.type = "greet";
    job.payload = payload.data();
    job.payload_len = payload.size();
    hf_enqueue_result result = {HF_ENQUEUE_RESULT_INIT};
    hf_err err = hf_enqueue_wait(producer, &job, 1, &result, 0, detail);
    hf_producer_close(producer, nullptr, nullptr);
    must(err, detail);
}

int work(const char *url)
{
    char detail[HF_DETAIL_SIZE] = "";
    int runs = 0;
    hf_worker_queue queue = {HF_WORKER_QUEUE_INIT};
    queue.name = "install";
    hf_server_opts server = {HF_SERVER_OPTS_INIT};
    server.url = url;
    hf_worker_opts opts = {HF_WORKER_OPTS_INIT};
    opts.server = &server;
    opts.queues = &queue;
    opts.n_queues = 1;
    opts.burst = true;
    hf_worker *worker;
    must(hf_worker_new(&worker, &opts, detail), detail);
    must(hf_worker_handle(worker, "greet", 60000, greet, &runs, detail), detail);
    must(hf_worker_run(worker, detail), detail);
    hf_worker_free(worker);
    return runs;
}

} // namespace

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : nullptr;
    try {
        enqueue(url);
        return work(url) == 1 ? 0 : 1;
    } catch (const Failure &failure) {
        std::fprintf(stderr, "%s: %s\n", hf_err_text(failure.err), failure.detail.c_str());
        return 1;
    }
}
