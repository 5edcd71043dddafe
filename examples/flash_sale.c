/* flash_sale.c - a sale with more buyers than goods: flash_sale [URL].
 *
 * 10,000 customers in four processes want 100 items. Buying is one step in Redis: a
 * script looks at the stock and at who has bought, takes an item, and enqueues the order
 * with holdfast's own script inside it; so there is never an order without its item, nor
 * an item without its order. (It is a step of one server: queue and stock share the tag
 * {sale}.)
 *
 * Three workers take the payments and add loyalty points, under one lock for each
 * account, which the outer and the inner function both take. On the way one worker is
 * killed, and one lock ends while its holder waits for the bank: what that one writes
 * then carries an old fence, and is refused. It ends with 0 when exactly 100 orders were
 * paid, each once, by 100 customers. */
#define _POSIX_C_SOURCE 200809L /* also with -std=c11 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>
#include <holdfast/holdfast.h>

enum {
    ITEMS = 100,
    BUYERS = 10000,
    BUYER_PROCESSES = 4,
    WORKERS = 3,
    POINTS = 10,    /* for an order, and for a gift */
    SLOW_ORDER = 50 /* the bank takes longer for this one than its lock lasts */
};

/* After enqueue.lua, which is the body of the function `enqueue`. It checks everything
 * before it writes anything, and so does this: nothing fails half way. */
static const char buy_script[] =
    "local stock, buyers, customer = KEYS[2], KEYS[3], ARGV[1]\n"
    "if redis.call('SISMEMBER', buyers, customer) == 1 then return 'has bought' end\n"
    "local left = tonumber(redis.call('GET', stock) or '0')\n"
    "if left < 1 then return 'sold out' end\n"
    "local record = '{\"type\":\"order.pay\",\"created\":' .. ARGV[2] .. '}\\n' ..\n"
    "    customer .. ' ' .. left\n"
    "local answer = enqueue({ KEYS[1] },\n"
    "    { '', '0', '0', '0', '0', 'order-' .. customer, '0', record })\n"
    "if answer[1] ~= 0 or answer[4][1] then return 'has bought' end\n"
    "redis.call('DECR', stock)\n"
    "redis.call('SADD', buyers, customer)\n"
    "return 'bought'\n";

/* What the accounts' store does with a write: refuses a lower fence than it has seen, and
 * does each thing once. */
static const char book_script[] =
    "local fences, once, sums = KEYS[1], KEYS[2], KEYS[3]\n"
    "local account, fence, thing, sum = ARGV[1], ARGV[2], ARGV[3], ARGV[4]\n"
    "local highest = redis.call('HGET', fences, account) or '0'\n"
    "if tonumber(fence) < tonumber(highest) then\n"
    "  redis.call('INCR', 'shop:{sale}:refused')\n"
    "  return 'stale'\n"
    "end\n"
    "redis.call('HSET', fences, account, fence)\n"
    "if redis.call('HSETNX', once, thing, account) == 0 then return 'done before' end\n"
    "redis.call('HINCRBY', sums, account, sum)\n"
    "return 'done'\n";

typedef struct shop {
    redisContext *redis;
    pthread_mutex_t one_at_a_time; /* handlers run in several threads */
    char *buy;                     /* the whole script */
    hf_lock_client *locks;
    hf_producer *producer;
} shop;

static const char *url;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "flash_sale: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- Redis ---- */

static redisReply *ask(shop *s, int argc, const char **argv)
{
    pthread_mutex_lock(&s->one_at_a_time);
    redisReply *reply = redisCommandArgv(s->redis, argc, argv, NULL);
    pthread_mutex_unlock(&s->one_at_a_time);
    if (reply == NULL)
        die(argv[0], s->redis->errstr);
    if (reply->type == REDIS_REPLY_ERROR)
        die(argv[0], reply->str);
    return reply;
}

static long long number(shop *s, const char *command, const char *key)
{
    redisReply *reply = ask(s, 2, (const char *[]){command, key});
    long long n = reply->type == REDIS_REPLY_STRING ? atoll(reply->str) : reply->integer;
    freeReplyObject(reply);
    return n;
}

/* The script's answer, a text. */
static void eval(shop *s, char answer[16], int argc, const char **argv)
{
    redisReply *reply = ask(s, argc, argv);
    snprintf(answer, 16, "%s", reply->type == REDIS_REPLY_STRING ? reply->str : "?");
    freeReplyObject(reply);
}

/* `local function enqueue(KEYS, ARGV) <enqueue.lua> end <ours>` */
static char *whole_buy_script(void)
{
    char path[512], *text = NULL;
    size_t size;
    const char *dir = getenv("HOLDFAST_LUA");
    if (dir == NULL)
        dir = access("/usr/share/holdfast/lua", R_OK) == 0
                  ? "/usr/share/holdfast/lua"
                  : "/usr/local/share/holdfast/lua";
    snprintf(path, sizeof path, "%s/enqueue.lua", dir);
    FILE *file = fopen(path, "r"), *out = open_memstream(&text, &size);
    if (file == NULL || out == NULL)
        die(path, strerror(errno));
    fputs("local function enqueue(KEYS, ARGV)\n", out);
    for (int c; (c = getc(file)) != EOF;)
        putc(c, out);
    fprintf(out, "\nend\n%s", buy_script);
    fclose(file);
    fclose(out);
    return text;
}

static void shop_open(shop *s)
{
    char host[256];
    int port = 6379;
    *s = (shop){.one_at_a_time = PTHREAD_MUTEX_INITIALIZER, .buy = whole_buy_script()};
    if (strncmp(url, "unix://", 7) == 0)
        s->redis = redisConnectUnix(url + 7);
    else if (sscanf(url, "redis://%255[^:/]:%d", host, &port) >= 1)
        s->redis = redisConnect(host, port);
    else
        die(url, "expected unix:///path or redis://host[:port]");
    if (s->redis == NULL || s->redis->err != 0)
        die(url, s->redis == NULL ? "no memory" : s->redis->errstr);
}

static void shop_close(shop *s)
{
    redisFree(s->redis);
    free(s->buy);
}

/* ---- buyers ---- */

/* What customers `first`, `first` + BUYER_PROCESSES ... were told goes to `fd`. Every
 * tenth asks twice; an answer that did not come could be asked for again just so. */
static int buyers(int first, int fd)
{
    shop s;
    int told[3] = {0}; /* bought, has bought, sold out */
    char answer[16], customer[16], now[24];
    shop_open(&s);
    snprintf(now, sizeof now, "%lld000", (long long)time(NULL));
    redisReply *loaded = ask(&s, 3, (const char *[]){"SCRIPT", "LOAD", s.buy});
    for (int i = first; i < BUYERS; i += BUYER_PROCESSES) {
        snprintf(customer, sizeof customer, "%d", i);
        for (int times = i % 10 == 0 ? 2 : 1; times > 0; times--) {
            eval(&s, answer, 8,
                 (const char *[]){"EVALSHA", loaded->str, "3",
                                  "hf:{sale}:", "shop:{sale}:stock", "shop:{sale}:buyers",
                                  customer, now});
            told[strcmp(answer, "bought") == 0       ? 0
                 : strcmp(answer, "has bought") == 0 ? 1
                                                     : 2]++;
        }
    }
    freeReplyObject(loaded);
    shop_close(&s);
    return write(fd, told, sizeof told) == (ssize_t)sizeof told ? 0 : 1;
}

/* ---- workers ---- */

/* Takes the account's lock. Whoever has it already, as the same owner, has it twice. */
static hf_lock *lock_account(shop *s, const char *account, const char *owner, bool slow)
{
    char name[64], detail[HF_DETAIL_SIZE];
    const char *const names[] = {name};
    hf_lock *lock = NULL;
    snprintf(name, sizeof name, "account-%s", account);
    const hf_lock_opts opts = {HF_LOCK_OPTS_INIT,
                               .names = names,
                               .n_names = 1,
                               .reentrant = true,
                               .owner = owner,
                               .wait_ms = 20000,
                               .lease_ms = slow ? 300 : 2000,
                               .fixed = slow};
    hf_err err = hf_lock_acquire_wait(s->locks, &opts, &lock, detail);
    if (err != HF_OK)
        fprintf(stderr, "flash_sale: %s: %s: %s\n", name, hf_err_text(err), detail);
    return lock;
}

/* Writes one thing under the lock's fence. False: the store has seen a higher one. */
static bool book(shop *s, hf_lock *lock, const char *account, const char *once,
                 const char *sums, const char *thing, int sum)
{
    char answer[16], fence[24], amount[16];
    snprintf(fence, sizeof fence, "%llu", (unsigned long long)hf_lock_fence(lock));
    snprintf(amount, sizeof amount, "%d", sum);
    eval(s, answer, 10,
         (const char *[]){"EVAL", book_script, "3", "shop:{sale}:fences", once, sums,
                          account, fence, thing, amount});
    return strcmp(answer, "stale") != 0;
}

/* The inner function: it takes the lock itself, so others may call it as well. */
static bool add_points(shop *s, const char *account, const char *owner, const char *why)
{
    hf_lock *lock = lock_account(s, account, owner, false);
    if (lock == NULL)
        return false;
    bool done =
        book(s, lock, account, "shop:{sale}:why", "shop:{sale}:points", why, POINTS);
    hf_lock_release_wait(lock, NULL);
    return done;
}

static uint64_t fence_seen(shop *s, const char *account)
{
    redisReply *reply =
        ask(s, 3, (const char *[]){"HGET", "shop:{sale}:fences", account});
    uint64_t fence = reply->str != NULL ? strtoull(reply->str, NULL, 10) : 0;
    freeReplyObject(reply);
    return fence;
}

/* The bank answers only when the lock has ended and somebody else has used the account:
 * the shop sends this customer a gift meanwhile. */
static void wait_for_slow_bank(shop *s, hf_lock *lock, const char *account)
{
    char id[32], detail[HF_DETAIL_SIZE];
    snprintf(id, sizeof id, "gift-%s", account);
    hf_err err = hf_enqueue_wait(
        s->producer,
        &(hf_job){HF_JOB_INIT, .queue = "sale", .type = "gift.send", .id = id,
                  .payload = account, .payload_len = strlen(account)},
        1, NULL, 0, detail);
    if (err != HF_OK)
        fprintf(stderr, "flash_sale: %s: %s\n", id, detail);
    while (hf_lock_held(lock) || fence_seen(s, account) <= hf_lock_fence(lock))
        pause_ms(5);
}

static hf_verdict pay(hf_run *run, void *arg)
{
    shop *s = arg;
    char account[16] = "", text[32], owner[HF_LOCK_OWNER_SIZE];
    int left = 0;
    size_t len;
    const char *payload = hf_run_payload(run, &len);
    snprintf(text, sizeof text, "%.*s", (int)len, payload);
    if (sscanf(text, "%15s %d", account, &left) != 2)
        return HF_VERDICT_DEAD;
    bool slow = left == SLOW_ORDER && hf_run_attempt(run) == 1;

    /* One owner for each run of the job: a later run must not enter as an earlier one. */
    snprintf(owner, sizeof owner, "%s.%llu", hf_run_id(run),
             (unsigned long long)hf_run_fence(run));
    hf_lock *lock = lock_account(s, account, owner, slow);
    if (lock == NULL)
        return HF_VERDICT_RETRY;
    if (slow)
        wait_for_slow_bank(s, lock, account);
    else
        pause_ms(50);
    bool done = book(s, lock, account, "shop:{sale}:paid", "shop:{sale}:turnover",
                     hf_run_id(run), 1) &&
                add_points(s, account, owner, hf_run_id(run));
    if (!done)
        hf_run_set_error(run, "the account's lock was lost: nothing was written");
    hf_lock_release_wait(lock, NULL);
    return done ? HF_VERDICT_DONE : HF_VERDICT_RETRY;
}

static hf_verdict send_gift(hf_run *run, void *arg)
{
    shop *s = arg;
    char account[16], owner[HF_LOCK_OWNER_SIZE];
    size_t len;
    const char *payload = hf_run_payload(run, &len);
    snprintf(account, sizeof account, "%.*s", (int)len, payload);
    snprintf(owner, sizeof owner, "%s.%llu", hf_run_id(run),
             (unsigned long long)hf_run_fence(run));
    return add_points(s, account, owner, hf_run_id(run)) ? HF_VERDICT_DONE
                                                         : HF_VERDICT_RETRY;
}

static hf_worker *worker;

static void on_term(int signal)
{
    (void)signal;
    hf_worker_stop(worker);
}

static int work(void)
{
    shop s;
    char detail[HF_DETAIL_SIZE] = "";
    const hf_worker_queue queue = {HF_WORKER_QUEUE_INIT, .name = "sale"};
    const hf_server_opts *server = HF_SERVER(.url = url);
    const hf_worker_opts opts = {
        HF_WORKER_OPTS_INIT, .server = server, .queues = &queue,      .n_queues = 1,
        .concurrency = 8,    .lease_ms = 2000, .backoff_base_ms = 200};
    shop_open(&s);
    hf_err err = hf_lock_client_open(
        &s.locks, &(hf_lock_client_opts){HF_LOCK_CLIENT_OPTS_INIT, .server = server},
        detail);
    if (err == HF_OK)
        err = hf_producer_open(
            &s.producer, &(hf_producer_opts){HF_PRODUCER_OPTS_INIT, .server = server},
            detail);
    if (err == HF_OK)
        err = hf_worker_new(&worker, &opts, detail);
    if (err == HF_OK)
        err = hf_worker_handle(worker, "order.pay", 30000, pay, &s, detail);
    if (err == HF_OK)
        err = hf_worker_handle(worker, "gift.send", 30000, send_gift, &s, detail);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
    if (err == HF_OK)
        err = hf_worker_run(worker, detail);
    if (err != HF_OK)
        fprintf(stderr, "flash_sale: %s: %s\n", hf_err_text(err), detail);
    hf_worker_free(worker);
    hf_producer_close(s.producer, NULL, NULL);
    hf_lock_client_close(s.locks, NULL, NULL);
    shop_close(&s);
    return err == HF_OK ? 0 : 1;
}

/* ---- the sale ---- */

static pid_t start(int (*role)(int, int), int arg, int fd)
{
    fflush(NULL);
    pid_t pid = fork(); /* before anything of holdfast is opened in this process */
    if (pid < 0)
        die("fork", strerror(errno));
    if (pid == 0)
        _exit(role(arg, fd));
    return pid;
}

static int work_role(int arg, int fd)
{
    (void)arg, (void)fd;
    return work();
}

static void wait_for(shop *s, const char *command, const char *key, long long at_least)
{
    for (int i = 0; number(s, command, key) < at_least; i++) {
        if (i == 12000)
            die(key, "not there within a minute");
        pause_ms(5);
    }
}

static int expect(const char *what, long long found, long long expected)
{
    printf("%-48s %6lld%s\n", what, found, found == expected ? "" : "  WRONG");
    return found == expected ? 0 : 1;
}

static int sale(shop *s, int told[3])
{
    int pipe_fds[2], some[3], failed = 0, status;
    pid_t workers[WORKERS];
    if (pipe(pipe_fds) != 0)
        die("pipe", strerror(errno));
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start(work_role, i, -1);
    for (int i = 0; i < BUYER_PROCESSES; i++)
        start(buyers, i, pipe_fds[1]);
    wait_for(s, "HLEN", "shop:{sale}:paid", ITEMS / 5);
    kill(workers[0], SIGKILL);

    for (int i = 0; i < BUYER_PROCESSES; i++) {
        if (read(pipe_fds[0], some, sizeof some) != (ssize_t)sizeof some)
            die("buyers", "ended early");
        for (int k = 0; k < 3; k++)
            told[k] += some[k];
    }
    wait_for(s, "HLEN", "shop:{sale}:why", ITEMS + 1);
    while (number(s, "EXISTS", "hf:{sale}:jobs") != 0)
        pause_ms(5); /* the last verdicts */
    for (int i = 1; i < WORKERS; i++)
        kill(workers[i], SIGTERM);
    for (pid_t pid; (pid = wait(&status)) > 0;)
        failed += pid != workers[0] && status != 0;
    return failed;
}

int main(int argc, char **argv)
{
    static const char *const keys[] = {"stock", "buyers", "paid",   "turnover",
                                       "why",   "points", "fences", "refused"};
    shop s;
    int told[3] = {0};
    url = argc > 1 ? argv[1] : getenv("REDIS_URL");
    if (url == NULL)
        url = "redis://localhost:6379";
    shop_open(&s);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char key[64];
        snprintf(key, sizeof key, "shop:{sale}:%s", keys[i]);
        freeReplyObject(ask(&s, 2, (const char *[]){"DEL", key}));
    }
    freeReplyObject(ask(&s, 3, (const char *[]){"SET", "shop:{sale}:stock", "100"}));

    int wrong = sale(&s, told);
    wrong += expect("customers who were told that they have bought", told[0], ITEMS);
    wrong += expect("told that it is sold out, or that they had", told[1] + told[2],
                    BUYERS + BUYERS / 10 - ITEMS);
    wrong += expect("items left", number(&s, "GET", "shop:{sale}:stock"), 0);
    wrong +=
        expect("customers of orders", number(&s, "SCARD", "shop:{sale}:buyers"), ITEMS);
    wrong += expect("orders paid", number(&s, "HLEN", "shop:{sale}:paid"), ITEMS);
    wrong += expect("times points were added: an order each, a gift",
                    number(&s, "HLEN", "shop:{sale}:why"), ITEMS + 1);
    wrong += expect("were writes with an old fence refused",
                    number(&s, "GET", "shop:{sale}:refused") > 0, 1);
    shop_close(&s);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
