/* Figures as SVG. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "plot/canvas.h"

typedef struct svg {
    ct_canvas canvas;
    ct_str text;
} svg;

static void draw_line(ct_canvas *canvas, const double *points, size_t num_points, uint32_t color, double alpha,
                      double line_width)
{
    ct_str *out = &((svg *)canvas)->text;
    ct_str_append(out, "<polyline points=\"");
    for (size_t i = 0; i < num_points; i++)
        ct_str_printf(out, "%s%.2f,%.2f", i ? " " : "", points[2 * i], points[2 * i + 1]);
    ct_str_printf(out, "\" fill=\"none\" stroke=\"#%06x\" stroke-width=\"%g\"", color, line_width);
    if (alpha < 1) ct_str_printf(out, " stroke-opacity=\"%g\"", alpha);
    ct_str_append(out, " stroke-linejoin=\"round\" stroke-linecap=\"round\"/>\n");
}

static void append_escaped(ct_str *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            ct_str_append(out, "&lt;");
        else if (*text == '&')
            ct_str_append(out, "&amp;");
        else if ((unsigned char)*text < 0x20)
            ct_str_append_char(out, ' ');
        else
            ct_str_append_char(out, *text);
    }
}

static void draw_text(ct_canvas *canvas, double x, double y, double size, uint32_t color, ct_canvas_align align,
                      const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    ct_str *out = &((svg *)canvas)->text, whole;
    ct_str_init(&whole);
    ct_utf8_append(&whole, text, strlen(text));
    ct_str_printf(out, "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%g\" fill=\"#%06x\" text-anchor=\"%s\">", x, y, size,
                  color, anchors[align]);
    append_escaped(out, whole.data);
    ct_str_append(out, "</text>\n");
    ct_str_deinit(&whole);
}

static void finish(ct_canvas *canvas, ct_str *out)
{
    svg *s = (svg *)canvas;
    ct_str_append_n(out, s->text.data, s->text.length);
    ct_str_append(out, "</svg>\n");
    ct_str_deinit(&s->text);
    free(s);
}

ct_canvas *ct_canvas_svg(double width, double height)
{
    svg *s = ct_alloc_zeroed(1, sizeof(*s));
    s->canvas = (ct_canvas){width, height, draw_line, draw_text, finish};
    ct_str_init(&s->text);
    ct_str_printf(&s->text,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" "
                  "font-family=\"Helvetica, Arial, sans-serif\">\n<rect width=\"100%%\" height=\"100%%\" "
                  "fill=\"#ffffff\"/>\n",
                  width, height, width, height);
    return &s->canvas;
}
