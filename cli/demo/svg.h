/* svg.h - a picture as SVG 1.1, in the order in which it is drawn: boxes, lines, curves
 * and text, on a white ground of its own.
 *
 * Lengths are px from the upper left corner. Shapes are clipped at the edge of the
 * canvas, texts are not. Every text is escaped, and characters other than printable ASCII
 * become question marks: the result is well-formed for any text. Colours and classes are
 * literals of the caller and go in as they are. */
#ifndef HF_CLI_DEMO_SVG_H
#define HF_CLI_DEMO_SVG_H

#include <stdbool.h>

#include "base/buf.h"

typedef struct hf_svg {
    hf_buf text; /* owned */
    double width, height;
} hf_svg;

typedef struct hf_svg_box {
    double x, y, width, height;
    const char *fill;   /* "#rrggbb" */
    const char *stroke; /* NULL: none */
    const char *class;  /* NULL: none; for readers of the file */
    const char *tip;    /* shown when one points at it; NULL: none */
} hf_svg_box;

typedef struct hf_svg_stroke {
    double x1, y1, x2, y2;
    const char *stroke;
    double width;
    bool dashed;
    const char *class, *tip; /* as above */
} hf_svg_stroke;

typedef enum hf_svg_align { HF_SVG_LEFT, HF_SVG_MIDDLE, HF_SVG_RIGHT } hf_svg_align;

typedef struct hf_svg_font {
    double size;
    const char *fill;
    hf_svg_align align;
    bool bold;
} hf_svg_font;

/* `title` is what a browser shows on its tab. At most `max` bytes. */
void hf_svg_begin(hf_svg *svg, double width, double height, const char *title,
                  size_t max);
void hf_svg_rect(hf_svg *svg, const hf_svg_box *box);
void hf_svg_line(hf_svg *svg, const hf_svg_stroke *line);
/* From its first to its second point, level at both. */
void hf_svg_curve(hf_svg *svg, const hf_svg_stroke *curve);
/* y: of the base line. */
void hf_svg_text(hf_svg *svg, double x, double y, const hf_svg_font *font,
                 const char *text);
/* HF_OK: svg->text is the whole file. HF_TOOBIG, HF_NOMEM: it is not. */
hf_err hf_svg_end(hf_svg *svg);
void hf_svg_done(hf_svg *svg); /* frees */

#endif
