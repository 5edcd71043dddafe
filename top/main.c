/* main.c - the program holdfast-top, which `holdfast top` runs: options, signals, and the
 * loop that draws what was read and takes keys. */
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/mask.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/out.h"
#include "top/curses.h"
#include "top/feed.h"
#include "top/keys.h"
#include "top/layout.h"

enum {
    ROWS = 24, /* of --once, where nothing tells more */
    COLUMNS = 80,
    SIZE_MAX_ = 1000,
    INTERVAL_MS = 1000,
    END_MS = 200,
    CLOCK_MS = 1000, /* the screen is drawn anew so often, for its clock */
    TRIES = 3
};

typedef struct top {
    hf_top_reader reader;
    hf_feed *feed;
    hf_view view;
    hf_screen screen;
    hf_want want;
} top;

/* ---- signals ---- */

static volatile sig_atomic_t asked; /* the signal that asks to end */

static void on_signal(int number)
{
    asked = number;
}

/* They come in pselect() only, so none is missed before it. *during: the mask there. */
static void take_signals(sigset_t *during)
{
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP};
    sigset_t held;
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigemptyset(&held);
    sigaddset(&held, SIGWINCH);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        (void)sigaction(ends[i], &action, NULL);
        sigaddset(&held, ends[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &held, during);
    sigdelset(during, SIGWINCH);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        sigdelset(during, ends[i]);
}

static void end_by(int number)
{
    sigset_t only;
    (void)signal(number, SIG_DFL);
    sigemptyset(&only);
    sigaddset(&only, number);
    (void)raise(number);
    (void)sigprocmask(SIG_UNBLOCK, &only, NULL);
}

/* ---- what is looked at ---- */

static void find_want(top *t)
{
    hf_want *want = &t->want;
    const hf_page_view *page = &t->view.pages[t->view.page];
    want->page = t->view.page;
    want->subject = t->view.subject;
    want->interval_ms = t->view.interval_ms;
    want->frozen = t->view.frozen;
    want->n_visible = 0;
    if (t->view.page != HF_PAGE_OVERVIEW)
        return;
    for (size_t i = page->top; i < t->view.n_order && i < page->top + t->view.page_rows &&
                               want->n_visible < HF_READER_VISIBLE;
         i++)
        memcpy(want->visible[want->n_visible++],
               t->reader.model.queues[t->view.order[i]].stats.queue, HF_ID_SIZE);
}

/* Draws into the cells. The lock is held, nothing waits. False: no memory. */
static bool draw(top *t, unsigned rows, unsigned columns)
{
    hf_model *model = &t->reader.model;
    if (hf_screen_begin(&t->screen, rows, columns) != HF_OK)
        return false;
    (void)pthread_mutex_lock(&t->reader.mutex);
    const bool done = hf_view_settle(&t->view, model);
    if (model->notice[0] != '\0') {
        (void)snprintf(t->view.message, sizeof t->view.message, "%s", model->notice);
        model->notice[0] = '\0';
    }
    if (done) {
        hf_layout(&t->screen, model, &t->view, hf_boot_ns());
        find_want(t);
    }
    (void)pthread_mutex_unlock(&t->reader.mutex);
    return done;
}

static void press(top *t, int key)
{
    (void)pthread_mutex_lock(&t->reader.mutex);
    if (hf_view_settle(&t->view, &t->reader.model))
        hf_keys_press(&t->view, &t->reader.model, key);
    (void)pthread_mutex_unlock(&t->reader.mutex);
    if (t->view.confirmed.kind != HF_CHANGE_NONE)
        hf_feed_change(t->feed, &t->view.confirmed);
    t->view.confirmed = (hf_change){.kind = HF_CHANGE_NONE};
}

/* ---- the loop ---- */

static bool wait_for_more(const top *t, const sigset_t *during)
{
    const struct timespec most = {.tv_sec = CLOCK_MS / 1000};
    const int fd = hf_feed_fd(t->feed);
    fd_set fds;
    FD_ZERO(&fds);
    FD_SET(STDIN_FILENO, &fds);
    FD_SET(fd, &fds);
    const int n = pselect(fd + 1, &fds, NULL, NULL, &most, during);
    if (n > 0 && FD_ISSET(fd, &fds))
        hf_feed_seen(t->feed);
    return n >= 0 || errno == EINTR;
}

/* The terminal has gone when it is readable without a key. */
static bool take_keys(top *t)
{
    int key;
    bool any = false;
    while ((key = hf_curses_key()) != -1) {
        any = true;
        if (key > 0)
            press(t, key);
    }
    return any;
}

static bool is_gone(void)
{
    struct winsize size;
    return ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0;
}

static int loop(top *t, const hf_cli *cli)
{
    sigset_t during;
    unsigned rows, columns;
    bool good = true;
    take_signals(&during);
    while (good && asked == 0 && !t->view.quit && !t->reader.out_of_memory) {
        hf_curses_size(&rows, &columns);
        good = draw(t, rows, columns);
        if (!good)
            break;
        hf_curses_draw(&t->screen);
        hf_feed_want(t->feed, &t->want);
        good = wait_for_more(t, &during);
        if (!take_keys(t) && is_gone())
            break;
    }
    hf_curses_close();
    if (asked != 0)
        return HF_EXIT_OK; /* it ends by the signal */
    return good && !t->reader.out_of_memory ? HF_EXIT_OK
                                            : hf_cli_fail(cli, HF_NOMEM, NULL);
}

static int run_at_terminal(top *t, const hf_cli *cli)
{
    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "top needs a terminal; --once prints one screen");
    const char *colours = getenv("NO_COLOR");
    const char *kind = getenv("TERM");
    if (kind == NULL || strcmp(kind, "dumb") == 0 ||
        !hf_curses_open(colours == NULL || *colours == '\0'))
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "top needs a terminal whose cursor it can move, and TERM is "
                          "'%s'; --once prints one screen",
                          kind == NULL ? "" : HF_FOUND(kind));
    hf_err err = hf_feed_open(&t->feed, &t->reader);
    if (err != HF_OK) {
        hf_curses_close();
        return hf_cli_fail(cli, err, NULL);
    }
    int code = loop(t, cli);
    if (hf_feed_close(t->feed, END_MS))
        return code;
    if (asked != 0)
        end_by((int)asked);
    _exit(code); /* the thread waits for a Redis that does not answer */
}

/* ---- --once ---- */

static unsigned size_of(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);
    int64_t n;
    if (text != NULL && hf_parse_int(text, 1, SIZE_MAX_, &n))
        return (unsigned)n;
    return otherwise;
}

static void find_size(unsigned *rows, unsigned *columns)
{
    struct winsize size = {.ws_row = ROWS, .ws_col = COLUMNS};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0)
        size = (struct winsize){.ws_row = ROWS, .ws_col = COLUMNS};
    *rows = size_of("LINES", size.ws_row);
    *columns = size_of("COLUMNS", size.ws_col);
}

/* The history of the queues is read once it is known which of them are visible. */
static bool read_once(top *t, unsigned rows, unsigned columns)
{
    for (int i = 0; i < TRIES && !t->reader.model.judged; i++)
        hf_reader_whole(&t->reader, &t->want, NULL, NULL);
    if (!draw(t, rows, columns)) /* which tells what is visible */
        return false;
    for (size_t n = 0; n <= t->want.n_visible && !t->reader.model.away;
         n += HF_READER_PASTS)
        hf_reader_page(&t->reader, &t->want);
    if (!draw(t, rows, columns))
        return false;
    return !t->reader.out_of_memory;
}

static int run_once(top *t, const hf_cli *cli)
{
    unsigned rows, columns;
    find_size(&rows, &columns);
    t->want.page = t->view.page;
    t->want.interval_ms = t->view.interval_ms;
    if (!read_once(t, rows, columns))
        return hf_cli_fail(cli, HF_NOMEM, NULL);
    char *line = malloc((size_t)columns * HF_CELL_SIZE + 1);
    if (line == NULL)
        return hf_cli_fail(cli, HF_NOMEM, NULL);
    for (unsigned row = 0; row < rows; row++) {
        hf_screen_row(&t->screen, row, line);
        puts(line);
    }
    free(line);
    return t->reader.model.away ? HF_EXIT_UNAVAILABLE : HF_EXIT_OK;
}

/* ---- the command ---- */

static int run(top *t, const hf_cli *cli)
{
    if (cli->json)
        return hf_cli_say(cli, HF_EXIT_USAGE, "",
                          "top has no --json: 'holdfast wrong --json' and 'holdfast "
                          "queue list --json' have the same");
    HF_ASSERT(cli->config != NULL); /* here the command is not bare */
    hf_reader_init(&t->reader, &cli->server,
                   hf_argv_number(cli->args, "late", HF_FACTS_LATE_MS),
                   cli->config->worker.poison);
    hf_view_init(&t->view);
    t->view.allow_changes = hf_argv_has(cli->args, "allow-changes");
    t->view.interval_ms = hf_argv_number(cli->args, "interval", INTERVAL_MS);
    t->view.page = (hf_top_page)hf_argv_number(cli->args, "page", HF_PAGE_OVERVIEW);
    t->view.utf8 = t->screen.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    int code =
        hf_argv_has(cli->args, "once") ? run_once(t, cli) : run_at_terminal(t, cli);
    hf_view_done(&t->view);
    hf_screen_done(&t->screen);
    hf_reader_done(&t->reader);
    return code;
}

int main(int argc, char **argv)
{
    char detail[HF_ARGV_DETAIL_SIZE] = "", why[HF_DETAIL_SIZE] = "";
    char **copies = NULL;
    hf_argv args = {0};
    hf_command command;
    hf_cli cli = {.args = &args, .detail = why};
    int code;
    (void)setlocale(LC_CTYPE, ""); /* numbers stay as programs write them */
    hf_err err = hf_argv_hide_passwords(argc, argv, &copies);
    if (err == HF_OK)
        err = hf_argv_parse(&args, hf_commands(), argc, argv, detail);
    if (err != HF_OK || args.command == NULL || args.command->run != hf_cmd_top) {
        code = hf_cli_say(&cli, HF_EXIT_USAGE, "", "run it as: holdfast top");
    } else {
        command = *args.command;
        command.bare = false; /* here the configuration is read */
        args.command = &command;
        top *t = calloc(1, sizeof *t);
        code = t == NULL ? hf_cli_fail(&cli, HF_NOMEM, NULL) : hf_cli_setup(&cli, &args);
        if (code == HF_EXIT_OK)
            code = run(t, &cli);
        hf_cli_done(&cli);
        free(t);
        if (fflush(stdout) != 0 && code == HF_EXIT_OK)
            code = HF_EXIT_OUTPUT;
    }
    hf_argv_done(&args);
    hf_argv_free_copies(copies);
    if (asked != 0)
        end_by((int)asked);
    return code;
}
