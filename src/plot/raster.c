/* Figures as pixels. A line is the points no farther from its segments than half its width, edges blended over a pixel:
 * the coverage of all its segments is gathered first, so that joints of see-through lines are not painted twice.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/png.h"
#include "plot/canvas.h"

typedef struct raster {
    ct_canvas canvas;
    double scale;
    int width, height; /* pixels */
    unsigned char *rgb;
    float *coverage; /* of the line under way; zero between lines */
} raster;

typedef struct box {
    int left, top, right, bottom; /* the latter two excluded */
} box;

static box box_around(const raster *r, const double *points, size_t num_points, double margin)
{
    double low_x = INFINITY, low_y = INFINITY, high_x = -INFINITY, high_y = -INFINITY;
    for (size_t i = 0; i < num_points; i++) {
        low_x = fmin(low_x, points[2 * i]);
        high_x = fmax(high_x, points[2 * i]);
        low_y = fmin(low_y, points[2 * i + 1]);
        high_y = fmax(high_y, points[2 * i + 1]);
    }
    return (box){(int)fmax(low_x - margin, 0), (int)fmax(low_y - margin, 0), (int)fmin(high_x + margin + 1, r->width),
                 (int)fmin(high_y + margin + 1, r->height)};
}

/* From a to b, in pixels. */
static void cover_segment(raster *r, const double *a, const double *b, double half_width)
{
    double ends[4] = {a[0], a[1], b[0], b[1]}, dx = b[0] - a[0], dy = b[1] - a[1], length2 = dx * dx + dy * dy;
    box around = box_around(r, ends, 2, half_width + 1);
    for (int y = around.top; y < around.bottom; y++)
        for (int x = around.left; x < around.right; x++) {
            double px = x + 0.5 - a[0], py = y + 0.5 - a[1];
            double along = length2 > 0 ? fmin(fmax((px * dx + py * dy) / length2, 0), 1) : 0;
            double distance = hypot(px - along * dx, py - along * dy);
            float covered = (float)fmin(fmax(half_width + 0.5 - distance, 0), 1);
            float *pixel = &r->coverage[(size_t)y * (size_t)r->width + (size_t)x];
            *pixel = fmaxf(*pixel, covered);
        }
}

static void paint(raster *r, box around, uint32_t color, double alpha)
{
    const double channels[3] = {color >> 16, color >> 8 & 0xff, color & 0xff};
    for (int y = around.top; y < around.bottom; y++)
        for (int x = around.left; x < around.right; x++) {
            size_t at = (size_t)y * (size_t)r->width + (size_t)x;
            double share = alpha * (double)r->coverage[at];
            r->coverage[at] = 0;
            if (share <= 0) continue;
            for (size_t c = 0; c < 3; c++) {
                unsigned char *value = &r->rgb[3 * at + c];
                *value = (unsigned char)(*value + share * (channels[c] - *value) + 0.5);
            }
        }
}

static void draw_line(ct_canvas *canvas, const double *points, size_t num_points, uint32_t color, double alpha,
                      double line_width)
{
    raster *r = (raster *)canvas;
    if (!num_points) return;
    double *pixels = ct_alloc(2 * num_points * sizeof(*pixels)), half_width = line_width * r->scale / 2;
    for (size_t i = 0; i < 2 * num_points; i++) pixels[i] = points[i] * r->scale;
    if (num_points == 1) cover_segment(r, pixels, pixels, half_width);
    for (size_t i = 1; i < num_points; i++) cover_segment(r, pixels + 2 * (i - 1), pixels + 2 * i, half_width);
    paint(r, box_around(r, pixels, num_points, half_width + 1), color, alpha);
    free(pixels);
}

typedef struct pen {
    raster *r;
    uint32_t color;
    double line_width;
} pen;

static void draw_stroke(void *context, const double *points, size_t num_points)
{
    pen *p = context;
    draw_line(&p->r->canvas, points, num_points, p->color, 1, p->line_width);
}

static void draw_text(ct_canvas *canvas, double x, double y, double size, uint32_t color, ct_canvas_align align,
                      const char *text)
{
    pen p = {(raster *)canvas, color, size / 11};
    if (align != CT_ALIGN_LEFT) x -= ct_font_width(text, size) * (align == CT_ALIGN_MIDDLE ? 0.5 : 1);
    for (; *text; text++) x += ct_font_strokes((unsigned char)*text, x, y, size, draw_stroke, &p);
}

static void finish(ct_canvas *canvas, ct_str *out)
{
    raster *r = (raster *)canvas;
    ct_png_append(out, r->rgb, (uint32_t)r->width, (uint32_t)r->height);
    free(r->rgb);
    free(r->coverage);
    free(r);
}

ct_canvas *ct_canvas_png(double width, double height, double scale)
{
    raster *r = ct_alloc_zeroed(1, sizeof(*r));
    r->canvas = (ct_canvas){width, height, draw_line, draw_text, finish};
    r->scale = scale;
    r->width = (int)ceil(width * scale);
    r->height = (int)ceil(height * scale);
    size_t num_pixels = (size_t)r->width * (size_t)r->height;
    r->rgb = ct_alloc(3 * num_pixels);
    memset(r->rgb, 0xff, 3 * num_pixels);
    r->coverage = ct_alloc_zeroed(num_pixels, sizeof(*r->coverage));
    return &r->canvas;
}
