/* keys.h - what each key does. The table is also the text of the help. */
#ifndef HF_TOP_KEYS_H
#define HF_TOP_KEYS_H

#include "top/view.h"

/* Keys that are no characters. */
enum {
    HF_KEY_ENTER = '\n',
    HF_KEY_TAB = '\t',
    HF_KEY_ESCAPE = 27,
    HF_KEY_BACKSPACE = 127,
    HF_KEY_UP = 0x110000,
    HF_KEY_DOWN,
    HF_KEY_LEFT,
    HF_KEY_RIGHT,
    HF_KEY_PAGE_UP,
    HF_KEY_PAGE_DOWN,
    HF_KEY_HOME,
    HF_KEY_END
};

/* Does what the key is for; the view was settled with this model. */
void hf_keys_press(hf_view *view, const hf_model *model, int key);

/* The lines of the help, as those of hf_top_text. */
void hf_keys_help(const hf_view *view, hf_buf *out);

/* The most important keys of the page, for the line above the last one. */
void hf_keys_line(const hf_view *view, char out[HF_LINE_SIZE]);

#endif
