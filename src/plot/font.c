/* A font of strokes for printable ASCII, on a grid of 5 columns: capitals stand on rows 0 to 6, small letters begin at
 * row 2, tails reach row 8. A stroke is a string of points, a column and a row each. A character is as wide as its last
 * column, and one and a half for the gap.
 */
#include "plot/canvas.h"

#include <string.h>

/* clang-format off */
static const char *const glyphs[] = {
    "", "0004 0606", "0002 2022", "1016 3036 0242 0444", "413010010213334445361605 2026",
    "4006 0010110100 3545463635", "460201102031320405162644", "0002", "10010516", "00111506",
    "1115 0224 0422", "1215 0333", "151607", "0333", "0606", "3006",
    "103041453616050110", "012026 0646", "01103041420646", "01103041423313 334445361605", "36300444",
    "400002324345361605", "413010010516364544331304", "004016", "103041423313020110 1304051636454433",
    "051636454130100102133342", "0202 0606", "1212 151607", "310335", "0232 0434", "013305", "01103041422324 2626",
    "342514122132344441301001051636",
    "062046 1434", "00063645443303 0030414233", "4130100105163645", "00063645413000", "40000646 0333", "400006 0333",
    "41301001051636454323", "0006 4046 0343", "0020 1016 0626", "3035261605", "0006 4004 1346", "000646", "0600234046",
    "06004640", "103041453616050110", "06003041423303", "103041453616050110 2446", "06003041423303 2346",
    "413010010213334445361605", "0040 2026", "000516364540", "002640", "0016223640", "0046 4006", "002340 2326",
    "00400646",
    "10000616", "0036", "00101606", "021022", "0747", "0011",
    "3322120305162635 3236", "0006 0312223335261605", "3322120305162635", "3036 3322120305162635",
    "04343322120305162635", "201116 0222", "3322120305162635 3237281807", "0006 0312223336", "0206 0000", "121708 1010",
    "0006 3204 1336", "000516", "0206 03122326 23324346", "0206 0312223336", "122233352616050312",
    "0208 0312223335261605", "3238 3322120305162635", "0206 031222", "3212031424352606", "101526 0222",
    "0205162635 3236", "022642", "0216233642", "0236 3206", "0226 4218", "02320636",
    "20111203141526", "0007", "00111223141506", "04132433",
};
/* clang-format on */

static const char *glyph_of(unsigned char c)
{
    static const char box[] = "0040460600";
    return c >= ' ' && c < ' ' + CT_COUNT(glyphs) ? glyphs[c - ' '] : box;
}

enum { CAPITAL_ROWS = 6 };

double ct_font_strokes(unsigned char character, double x, double y, double size,
                       void (*line)(void *context, const double *points, size_t num_points), void *context)
{
    double unit = 0.7 * size / CAPITAL_ROWS, points[64];
    size_t num_points = 0;
    int last_column = character == ' ' ? 2 : 0;
    for (const char *at = glyph_of(character);; at++) {
        if (*at == ' ' || !*at) {
            if (line && num_points) line(context, points, num_points);
            num_points = 0;
            if (!*at) break;
            continue;
        }
        int column = *at++ - '0', row = *at - '0';
        points[2 * num_points] = x + column * unit;
        points[2 * num_points + 1] = y + (row - CAPITAL_ROWS) * unit;
        last_column = CT_MAX(last_column, column);
        num_points++;
    }
    return (last_column + 1.7) * unit;
}

double ct_font_width(const char *text, double size)
{
    double width = 0;
    for (; *text; text++) width += ct_font_strokes((unsigned char)*text, 0, 0, size, NULL, NULL);
    return width;
}
