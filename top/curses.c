/* curses.c - see curses.h. */
#include "top/curses.h"

#include <curses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

/* Macros of term.h. */
#undef columns
#undef lines

#include "base/base.h"
#include "top/keys.h"

enum { ESCAPE_MS = 25, RESTORE_SIZE = 256, RED = 1, GREEN, YELLOW, CYAN };

static SCREEN *terminal;
static int attributes[HF_STYLE_CHOSEN + 1];

/* ---- after a crash: only what a handler of signals may do ---- */

static struct termios before;
static char restore[RESTORE_SIZE];
static size_t restore_len;

/* A text that the terminal obeys, without the pauses ("$<5>") that old ones need. */
static void add_restore(const char *name)
{
    const char *text = tigetstr(name);
    if (text == NULL || text == (char *)-1)
        return;
    while (*text != '\0' && restore_len < RESTORE_SIZE) {
        if (text[0] == '$' && text[1] == '<')
            text += strcspn(text, ">") + (strchr(text, '>') != NULL ? 1 : 0);
        else
            restore[restore_len++] = *text++;
    }
}

#ifndef HF_SANITIZED /* whose own handler reports more */
static void on_crash(int number)
{
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    ssize_t written = write(STDOUT_FILENO, restore, restore_len);
    (void)written;
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}
#endif

static void expect_crashes(void)
{
    static const char *const names[] = {"sgr0", "cnorm", "rmkx", "rmcup"};
    restore_len = 0;
    for (size_t i = 0; i < HF_COUNT(names); i++)
        add_restore(names[i]);
#ifndef HF_SANITIZED
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    struct sigaction action = {.sa_handler = on_crash};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < HF_COUNT(signals); i++)
        (void)sigaction(signals[i], &action, NULL);
#endif
}

/* ---- open, close ---- */

/* Nothing is told by colour alone, so without colours all is there. */
static void set_styles(bool colours)
{
    static const int plain[] = {[HF_STYLE_PLAIN] = A_NORMAL,  [HF_STYLE_DIM] = A_DIM,
                                [HF_STYLE_BOLD] = A_BOLD,     [HF_STYLE_BAD] = A_BOLD,
                                [HF_STYLE_WARN] = A_BOLD,     [HF_STYLE_GOOD] = A_NORMAL,
                                [HF_STYLE_RUNS] = A_NORMAL,   [HF_STYLE_TITLE] = A_BOLD,
                                [HF_STYLE_CHOSEN] = A_REVERSE};
    memcpy(attributes, plain, sizeof plain);
    if (!colours || !has_colors() || start_color() == ERR || use_default_colors() == ERR)
        return;
    (void)init_pair(RED, COLOR_RED, -1);
    (void)init_pair(GREEN, COLOR_GREEN, -1);
    (void)init_pair(YELLOW, COLOR_YELLOW, -1);
    (void)init_pair(CYAN, COLOR_CYAN, -1);
    attributes[HF_STYLE_BAD] |= (int)COLOR_PAIR(RED);
    attributes[HF_STYLE_WARN] |= (int)COLOR_PAIR(YELLOW);
    attributes[HF_STYLE_GOOD] |= (int)COLOR_PAIR(GREEN);
    attributes[HF_STYLE_RUNS] |= (int)COLOR_PAIR(CYAN);
}

static bool moves_its_cursor(void)
{
    const char *text = tigetstr("cup");
    return text != NULL && text != (char *)-1;
}

bool hf_curses_open(bool colours)
{
    (void)tcgetattr(STDIN_FILENO, &before);
    terminal = newterm(NULL, stdout, stdin);
    if (terminal == NULL)
        return false;
    if (!moves_its_cursor()) {
        hf_curses_close();
        return false;
    }
    expect_crashes();
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    (void)set_escdelay(ESCAPE_MS);
    (void)curs_set(0);
    set_styles(colours);
    return true;
}

void hf_curses_close(void)
{
    if (terminal == NULL)
        return;
    (void)endwin();
    delscreen(terminal);
    terminal = NULL;
}

/* ---- use ---- */

void hf_curses_size(unsigned *rows, unsigned *columns)
{
    *rows = (unsigned)LINES;
    *columns = (unsigned)COLS;
}

int hf_curses_key(void)
{
    static const int keys[][2] = {{KEY_UP, HF_KEY_UP},
                                  {KEY_DOWN, HF_KEY_DOWN},
                                  {KEY_LEFT, HF_KEY_LEFT},
                                  {KEY_RIGHT, HF_KEY_RIGHT},
                                  {KEY_PPAGE, HF_KEY_PAGE_UP},
                                  {KEY_NPAGE, HF_KEY_PAGE_DOWN},
                                  {KEY_HOME, HF_KEY_HOME},
                                  {KEY_END, HF_KEY_END},
                                  {KEY_ENTER, HF_KEY_ENTER},
                                  {'\r', HF_KEY_ENTER},
                                  {KEY_BACKSPACE, HF_KEY_BACKSPACE},
                                  {'\b', HF_KEY_BACKSPACE}};
    const int key = getch();
    if (key == ERR)
        return -1;
    if (key == KEY_RESIZE)
        return -2;
    for (size_t i = 0; i < HF_COUNT(keys); i++)
        if (keys[i][0] == key)
            return keys[i][1];
    return key < KEY_MIN ? key : 0;
}

/* The cells of one style from `at` on; returns where they end. */
static unsigned draw_run(const hf_screen *screen, unsigned row, unsigned at)
{
    const hf_cell *cells = &screen->cells[(size_t)row * screen->columns];
    const uint8_t style = cells[at].style;
    char text[1024];
    size_t len = 0;
    (void)attrset(attributes[style]);
    (void)move((int)row, (int)at);
    for (; at < screen->columns && cells[at].style == style &&
           len + HF_CELL_SIZE < sizeof text;
         at++)
        if (cells[at].c != 0)
            len += hf_screen_utf8(cells[at].c, text + len);
    (void)addnstr(text, (int)len);
    return at;
}

void hf_curses_draw(const hf_screen *screen)
{
    (void)erase();
    for (unsigned row = 0; row < screen->rows; row++)
        for (unsigned at = 0; at < screen->columns;)
            at = draw_run(screen, row, at);
    (void)refresh();
}
