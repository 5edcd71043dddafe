/* svg.c - writes a picture as SVG. Attributes of presentation and no style sheet: every
 * program that shows SVG knows those. */
#include "cli/demo/svg.h"

static void add_escaped(hf_buf *out, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char c = (unsigned char)*at;
        switch (c) {
        case '&':
            hf_buf_text(out, "&amp;");
            break;
        case '<':
            hf_buf_text(out, "&lt;");
            break;
        case '>':
            hf_buf_text(out, "&gt;");
            break;
        case '"':
            hf_buf_text(out, "&quot;");
            break;
        case '\'':
            hf_buf_text(out, "&#39;");
            break;
        default:
            hf_buf_add(out, c < ' ' || c > '~' ? "?" : at, 1);
        }
    }
}

/* A value that is not a number becomes 0, too. */
static double cut(double value, double max)
{
    if (!(value > 0))
        return 0;
    return value < max ? value : max;
}

static void add_class(hf_svg *svg, const char *class)
{
    if (class != NULL)
        hf_buf_printf(&svg->text, " class=\"%s\"", class);
}

/* Ends an element, with what is shown when one points at it. */
static void end_element(hf_svg *svg, const char *name, const char *tip)
{
    if (tip == NULL) {
        hf_buf_text(&svg->text, "/>\n");
        return;
    }
    hf_buf_text(&svg->text, "><title>");
    add_escaped(&svg->text, tip);
    hf_buf_printf(&svg->text, "</title></%s>\n", name);
}

void hf_svg_begin(hf_svg *svg, double width, double height, const char *title, size_t max)
{
    *svg = (hf_svg){.width = width, .height = height};
    hf_buf_init(&svg->text, max);
    hf_buf_printf(&svg->text,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
                  "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
                  "font-family=\"DejaVu Sans, Verdana, sans-serif\">\n<title>",
                  width, height, width, height);
    add_escaped(&svg->text, title);
    hf_buf_text(&svg->text, "</title>\n");
    hf_svg_rect(svg, &(hf_svg_box){.width = width, .height = height, .fill = "#ffffff"});
}

void hf_svg_rect(hf_svg *svg, const hf_svg_box *box)
{
    double x = cut(box->x, svg->width), y = cut(box->y, svg->height);
    double right = cut(box->x + box->width, svg->width);
    double bottom = cut(box->y + box->height, svg->height);
    hf_buf_text(&svg->text, "<rect");
    add_class(svg, box->class);
    hf_buf_printf(&svg->text,
                  " x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"", x,
                  y, cut(right - x, svg->width), cut(bottom - y, svg->height), box->fill);
    if (box->stroke != NULL)
        hf_buf_printf(&svg->text, " stroke=\"%s\"", box->stroke);
    end_element(svg, "rect", box->tip);
}

static void add_stroke(hf_svg *svg, const hf_svg_stroke *stroke)
{
    hf_buf_printf(&svg->text, " stroke=\"%s\" stroke-width=\"%.1f\"%s", stroke->stroke,
                  stroke->width, stroke->dashed ? " stroke-dasharray=\"5 4\"" : "");
}

void hf_svg_line(hf_svg *svg, const hf_svg_stroke *line)
{
    hf_buf_text(&svg->text, "<line");
    add_class(svg, line->class);
    hf_buf_printf(&svg->text, " x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"",
                  cut(line->x1, svg->width), cut(line->y1, svg->height),
                  cut(line->x2, svg->width), cut(line->y2, svg->height));
    add_stroke(svg, line);
    end_element(svg, "line", line->tip);
}

void hf_svg_curve(hf_svg *svg, const hf_svg_stroke *curve)
{
    double x1 = cut(curve->x1, svg->width), y1 = cut(curve->y1, svg->height);
    double x2 = cut(curve->x2, svg->width), y2 = cut(curve->y2, svg->height);
    double middle = (x1 + x2) / 2;
    hf_buf_text(&svg->text, "<path");
    add_class(svg, curve->class);
    hf_buf_printf(&svg->text, " d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"", x1, y1,
                  middle, y1, middle, y2, x2, y2);
    hf_buf_text(&svg->text, " fill=\"none\"");
    add_stroke(svg, curve);
    end_element(svg, "path", curve->tip);
}

void hf_svg_text(hf_svg *svg, double x, double y, const hf_svg_font *font,
                 const char *text)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"",
                                          " text-anchor=\"end\""};
    hf_buf_printf(&svg->text, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\"%s%s", x, y,
                  font->size, anchors[font->align],
                  font->bold ? " font-weight=\"bold\"" : "");
    hf_buf_printf(&svg->text, " fill=\"%s\">", font->fill);
    add_escaped(&svg->text, text);
    hf_buf_text(&svg->text, "</text>\n");
}

hf_err hf_svg_end(hf_svg *svg)
{
    hf_buf_text(&svg->text, "</svg>\n");
    return hf_buf_err(&svg->text);
}

void hf_svg_done(hf_svg *svg)
{
    hf_buf_done(&svg->text);
}
