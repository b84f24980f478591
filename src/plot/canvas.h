/* What figures are drawn on: an SVG text, or pixels. Units are points, y grows downwards.
 *
 *   figure.c -- lines, boxes, texts --> ct_canvas --> svg.c    <polyline>, <text>
 *                                                 --> raster.c  pixels, letters as strokes (font.c)
 */
#ifndef CT_PLOT_CANVAS_H
#define CT_PLOT_CANVAS_H

#include "base/str.h"

typedef enum ct_canvas_align { CT_ALIGN_LEFT, CT_ALIGN_MIDDLE, CT_ALIGN_RIGHT } ct_canvas_align;

typedef struct ct_canvas ct_canvas;
struct ct_canvas {
    double width, height;
    /* points: x, y, x, y, ... */
    void (*line)(ct_canvas *canvas, const double *points, size_t num_points, uint32_t color, double alpha,
                 double line_width);
    /* y is the baseline; size the height of capitals divided by 0.7 */
    void (*text)(ct_canvas *canvas, double x, double y, double size, uint32_t color, ct_canvas_align align,
                 const char *text);
    void (*finish)(ct_canvas *canvas, ct_str *out); /* appends the file, and frees the canvas */
};

ct_canvas *ct_canvas_svg(double width, double height);
/* scale: pixels per point */
ct_canvas *ct_canvas_png(double width, double height, double scale);

/* How wide a text of this size is, on either canvas about. */
double ct_font_width(const char *text, double size);

/* Calls line for each stroke of a character at x on the baseline y; the character's width. What is not ASCII is a box.
 */
double ct_font_strokes(unsigned char character, double x, double y, double size,
                       void (*line)(void *context, const double *points, size_t num_points), void *context);

#endif
