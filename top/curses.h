/* curses.h - the terminal, by ncurses: it shows a screen, and tells sizes and keys. */
#ifndef HF_TOP_CURSES_H
#define HF_TOP_CURSES_H

#include <stdbool.h>

#include "top/screen.h"

/* Takes over the terminal that is standard input and output. False: its kind, by TERM,
 * cannot do what is needed. Also a crash gives it back. */
bool hf_curses_open(bool colours);
/* Gives it back as it was. */
void hf_curses_close(void);

void hf_curses_size(unsigned *rows, unsigned *columns);
/* A key of keys.h that was pressed; -1: none so far; -2: the size has changed. */
int hf_curses_key(void);
void hf_curses_draw(const hf_screen *screen);

#endif
