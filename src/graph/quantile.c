/* Wichura's quantile and a series for the distribution function, from which the cubics are interpolated. */
#include "graph/quantile.h"

#include <math.h>

/* ln(x) for x in [1, 2): 2 atanh((x - 1) / (x + 1)). */
static double log_of_octave(double x)
{
    double t = (x - 1) / (x + 1), square = t * t, power = t, sum = 0;
    for (int n = 1; n < 60; n += 2) {
        sum += power / n;
        power *= square;
    }
    return 2 * sum;
}

static double horner(const double *coefficients, int count, double x)
{
    double sum = 0;
    for (int i = count - 1; i >= 0; i--) sum = sum * x + coefficients[i];
    return sum;
}

/* -Phi^-1(p) for p = x 2^-k <= 1/2, x in [1, 2], p >= e^-25.
 * Source: Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37, 1988;
 * PPND16, accurate to about 1e-16. */
static double upper_quantile(double x, int k)
{
    static const double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double b[8] = {1,
                                4.2313330701600911252e+1,
                                6.8718700749205790830e+2,
                                5.3941960214247511077e+3,
                                2.1213794301586595867e+4,
                                3.9307895800092710610e+4,
                                2.8729085735721942674e+4,
                                5.2264952788528545610e+3};
    static const double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[8] = {1,
                                2.05319162663775882187e0,
                                1.67638483018380384940e0,
                                6.89767334985100004550e-1,
                                1.48103976427480074590e-1,
                                1.51986665636164571966e-2,
                                5.47593808499534494600e-4,
                                1.05075007164441684324e-9};
    double p = x;
    for (int i = 0; i < k; i++) p *= 0.5;
    double q = 0.5 - p;
    if (q <= 0.425) {
        double r = 0.180625 - q * q;
        return q * horner(a, 8, r) / horner(b, 8, r);
    }
    static const double log_2 = 0.693147180559945309417;
    double r = sqrt(k * log_2 - (x < 2 ? log_of_octave(x) : log_2)) - 1.6;
    return horner(c, 8, r) / horner(d, 8, r);
}

static int32_t fixed(double value, int bits)
{
    double scaled = value * (double)((int64_t)1 << bits);
    return (int32_t)(scaled + (scaled >= 0 ? 0.5 : -0.5));
}

void ct__quantile_table(int32_t out[4][CT__QUANTILE_ROWS])
{
    /* Chebyshev nodes of [0, 1]: (1 - cos((2i + 1) pi / 8)) / 2 */
    static const double node[4] = {0.038060233744356631, 0.308658283817455114, 0.691341716182544886,
                                   0.961939766255643369};
    for (int row = 0; row < CT__QUANTILE_ROWS; row++) {
        int zeros = row / 16, segment = row % 16;
        double f[4];
        for (int i = 0; i < 4; i++) f[i] = upper_quantile(1 + (segment + node[i]) / 16, zeros + 2);
        for (int order = 1; order < 4; order++) /* divided differences */
            for (int i = 3; i >= order; i--) f[i] = (f[i] - f[i - 1]) / (node[i] - node[i - order]);
        /* Newton's form to powers of r */
        double a[4] = {f[3], 0, 0, 0};
        for (int i = 2; i >= 0; i--) {
            for (int j = 3; j > 0; j--) a[j] = a[j - 1] - node[i] * a[j];
            a[0] = f[i] - node[i] * a[0];
        }
        out[0][row] = fixed(a[0], CT__QUANTILE_Z_BITS);
        for (int k = 1; k < 4; k++) out[k][row] = fixed(a[k], CT__QUANTILE_SLOPE_BITS);
    }
}

/* e^-x for 0 <= x <= 32: Taylor of x / 2^10, squared ten times. */
static double exp_of_minus(double x)
{
    double y = -x / 1024, term = 1, sum = 1;
    for (int n = 1; n < 16; n++) {
        term *= y / n;
        sum += term;
    }
    for (int i = 0; i < 10; i++) sum *= sum;
    return sum;
}

int64_t ct__normal_cdf_fixed(double x)
{
    static const double full = 4294967296.0;
    if (x <= -6.5) return 0;
    if (x >= 6.5) return (int64_t)full;
    /* Phi(x) = 1/2 + phi(x) (x + x^3/3 + x^5/15 + ...) */
    double term = x, sum = 0;
    for (int n = 1; n < 400; n += 2) {
        sum += term;
        term *= x * x / (n + 2);
    }
    double phi = exp_of_minus(x * x / 2) * 0.398942280401432677940;
    double scaled = (0.5 + phi * sum) * full + 0.5;
    return scaled <= 0 ? 0 : scaled >= full ? (int64_t)full : (int64_t)scaled;
}
