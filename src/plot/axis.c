/* Ticks at 1, 2 or 5 times a power of ten. */
#include "plot/axis.h"

#include <math.h>

ct_plot_axis ct_plot_axis_make(double low, double high, int max_ticks, double pad)
{
    if (!(high > low)) { /* one value: room around it */
        double around = fabs(low) > 0 ? 0.1 * fabs(low) : 1;
        low -= around;
        high += around;
    }
    double room = pad * (high - low);
    ct_plot_axis axis = {.low = low - room, .high = high + room};
    double rough = (axis.high - axis.low) / CT_MAX(max_ticks, 2), power = pow(10, floor(log10(rough)));
    static const double factors[] = {1, 2, 5, 10};
    for (size_t i = 0; i < CT_COUNT(factors) && axis.step < rough; i++) axis.step = factors[i] * power;
    axis.first = ceil(axis.low / axis.step) * axis.step;
    axis.num_ticks = (int)floor((axis.high - axis.first) / axis.step + 1e-9) + 1;
    return axis;
}

double ct_plot_axis_tick(const ct_plot_axis *axis, int index)
{
    double value = axis->first + index * axis->step;
    return fabs(value) < 1e-9 * axis->step ? 0 : value;
}

double ct_plot_axis_place(const ct_plot_axis *axis, double value)
{
    return (value - axis->low) / (axis->high - axis->low);
}

void ct_plot_axis_text(const ct_plot_axis *axis, double value, ct_str *out)
{
    static const struct {
        double size;
        const char *suffix;
    } units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    double largest = fmax(fabs(axis->low), fabs(axis->high)), unit = 1;
    const char *suffix = "";
    if (value == 0) {
        ct_str_append(out, "0");
        return;
    }
    if (largest < 1e-3 || largest >= 1e15) {
        int digits = (int)floor(log10(fabs(value)) + 1e-9) - (int)floor(log10(axis->step) + 1e-9);
        ct_str_printf(out, "%.*e", CT_MAX(digits, 0), value);
        return;
    }
    for (size_t i = 0; i < CT_COUNT(units) && largest >= 1e4 && unit == 1; i++)
        if (largest >= units[i].size) {
            unit = units[i].size;
            suffix = units[i].suffix;
        }
    int decimals = (int)ceil(-log10(axis->step / unit) - 1e-9);
    ct_str_printf(out, "%.*f%s", CT_MIN(CT_MAX(decimals, 0), 12), value / unit, suffix);
}

bool ct_plot_panel_axes(const ct_plot_panel *panel, int max_x_ticks, int max_y_ticks, ct_plot_axis *out_x,
                        ct_plot_axis *out_y)
{
    double low_x = INFINITY, high_x = -INFINITY, low_y = INFINITY, high_y = -INFINITY;
    for (size_t i = 0; i < panel->num_curves; i++) {
        const ct_plot_curve *curve = &panel->curves[i];
        for (size_t j = 0; j < curve->num_points; j++) {
            low_x = fmin(low_x, curve->x[j]);
            high_x = fmax(high_x, curve->x[j]);
            low_y = fmin(low_y, curve->y[j]);
            high_y = fmax(high_y, curve->y[j]);
        }
    }
    if (!(low_x <= high_x)) return false;
    *out_x = ct_plot_axis_make(low_x, high_x, max_x_ticks, 0);
    *out_y = ct_plot_axis_make(low_y, high_y, max_y_ticks, 0.04);
    return true;
}

uint32_t ct_plot_color(size_t index)
{
    static const uint32_t colors[] = {0x1f6fb4, 0xd9541e, 0x2a9246, 0x8a4fb0, 0xb98a00, 0x17929e, 0xc33c7c, 0x6b6b6b};
    return colors[index % CT_COUNT(colors)];
}
