/* What tests of predictions share: small programs of HLO text, and what came out of them. For _test.c files only. */
#ifndef CT_PREDICT_TESTING_H
#define CT_PREDICT_TESTING_H

#include <math.h>

#include "base/testing.h"
#include "pjrt/hlo_text.h"
#include "predict/predict.h"

/* An instruction that takes so many microseconds of a v6e by the compiler's estimate (1750 cycles each). */
#define CT_TEST_WORK(name, operand, cycles)                                                                            \
    "  " name " = f32[1024,256]{1,0} negate(" operand                                                                  \
    "), backend_config={\"window_config\":{\"estimated_cycles\":\"" cycles "\"}}\n"

static ct_arena ct_test_arena;

static inline int ct_test_arena_init(void **state)
{
    (void)state;
    ct_arena_init(&ct_test_arena);
    return 0;
}

static inline int ct_test_arena_deinit(void **state)
{
    (void)state;
    ct_arena_deinit(&ct_test_arena);
    return 0;
}

static inline ct_hlo_module *ct_test_module(const char *text)
{
    ct_hlo_module *module;
    expect_ok(ct_hlo_parse(&ct_test_arena, text, strlen(text), "test.txt", &module));
    return module;
}

/* shape NULL: as the program's devices say. */
static inline ct_prediction *ct_test_predict_on(const char *chip, const char *shape, const char *text)
{
    ct_predict_opts opts = {.chip = ct_chip_find(chip)};
    ct_torus torus;
    ct_prediction *prediction;
    if (shape) {
        expect_ok(ct_predict_torus(opts.chip, shape, 0, &torus));
        opts.torus = &torus;
    }
    expect_ok(ct_predict(&ct_test_arena, ct_test_module(text), &opts, &prediction));
    return prediction;
}

/* On v6e:2x2: links of 90 GB/s each way, two lines of two. */
static inline ct_prediction *ct_test_predict(const char *text)
{
    return ct_test_predict_on("v6e", "2x2", text);
}

static inline void ct_test__near(double found, double wanted, const char *what, int line)
{
    if (fabs(found - wanted) > 1e-6 * fabs(wanted) + 1e-15)
        fail_msg("line %d: %s is %.9g, wanted %.9g", line, what, found, wanted);
}
#define expect_near(found, wanted) ct_test__near((found), (wanted), #found, __LINE__)

/* The step in microseconds at mid efficiency. */
static inline double ct_test_us(const ct_prediction *prediction)
{
    return 1e6 * prediction->step.at[CT_CHIP_MID];
}

static inline const ct_predict_unknown *ct_test_unknown(const ct_prediction *prediction, const char *what)
{
    for (size_t i = 0; i < prediction->num_unknowns; i++)
        if (strstr(prediction->unknowns[i].what, what)) return &prediction->unknowns[i];
    return NULL;
}

static inline bool ct_test_noted(const ct_prediction *prediction, const char *text)
{
    for (size_t i = 0; i < prediction->num_notes; i++)
        if (strstr(prediction->notes[i], text)) return true;
    return false;
}

/* The groups' times must add up to the step's, at every efficiency. */
static inline void ct_test_sums(const ct_prediction *prediction)
{
    for (int e = 0; e < CT_CHIP_NUM_EFFICIENCIES; e++) {
        double sum = 0;
        for (int g = 0; g < CT_PREDICT_NUM_GROUPS; g++) sum += prediction->groups[g].at[e];
        expect_near(sum, prediction->step.at[e]);
    }
}

#endif
