/* The interpreter itself: what ops compute, and that it finds the mistakes that it is there for. */
#include <math.h>

#include "base/testing.h"
#include "interpreter.h"
#include "kernels/mosaic/mosaic.h"

/* A kernel of one input and one output, both f32 in blocks of [8 128]; grid [2 3]. */
typedef struct sample {
    ct_mosaic *k;
    ct_mosaic_value i, j, x, y, scratch;
    int64_t x_block, y_block; /* added to the blocks that windows show */
    bool y_by_j;
} sample;

static void place_x(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const sample *s = context;
    out_blocks[0] = ct_mosaic_add(k, s->j, ct_mosaic_int(k, s->x_block));
    out_blocks[1] = ct_mosaic_int(k, 0);
}

static void place_y(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const sample *s = context;
    out_blocks[0] = ct_mosaic_add(k, s->y_by_j ? s->j : s->i, ct_mosaic_int(k, s->y_block));
    out_blocks[1] = ct_mosaic_int(k, 0);
}

static const int64_t BLOCK[2] = {8, 128};
enum { ROWS = 3 * 8, COLUMNS = 128 };

static void begin(sample *s, bool parallel)
{
    s->k = ct_mosaic_new("sample");
    s->i = ct_mosaic_grid(s->k, 2, parallel);
    s->j = ct_mosaic_grid(s->k, 3, false);
    s->x = ct_mosaic_input(s->k, CT_MOSAIC_F32, 2, BLOCK, place_x, s);
    s->y = ct_mosaic_output(s->k, CT_MOSAIC_F32, 2, BLOCK, place_y, s);
    s->scratch = ct_mosaic_scratch(s->k, CT_MOSAIC_F32, 2, BLOCK);
}

static ct_mosaic_value load(const sample *s, ct_mosaic_value memory)
{
    return ct_mosaic_load(s->k, memory, NULL, 0, 8, 0, 128);
}

static void store(const sample *s, ct_mosaic_value x, ct_mosaic_value memory)
{
    ct_mosaic_store(s->k, x, memory, NULL, 0, 0);
}

static void if_at(const sample *s, ct_mosaic_value index, int64_t at)
{
    ct_mosaic_if(s->k, ct_mosaic_compare(s->k, CT_MOSAIC_EQ, index, ct_mosaic_int(s->k, at)));
}

static float x_values[ROWS * COLUMNS], y_values[2 * 8 * COLUMNS];
static int64_t missing_rows; /* of both arrays: their windows reach beyond them */

/* Runs the kernel's text, in which `from` (if not NULL) has become `to`. */
static ct_status *run_edited(const char *kernel, const char *from, const char *to)
{
    for (int i = 0; i < ROWS * COLUMNS; i++) x_values[i] = (float)(i / COLUMNS);
    ct_array x = {.dtype = CT_DTYPE_F32, .rank = 2, .sizes = {ROWS - missing_rows, COLUMNS}, .data = x_values};
    ct_array y = {.dtype = CT_DTYPE_F32, .rank = 2, .sizes = {2 * 8 - missing_rows, COLUMNS}, .data = y_values};
    ct_str text = {0};
    const char *at = from ? strstr(kernel, from) : NULL;
    if (from) assert_non_null(at);
    ct_str_append_n(&text, kernel, at ? (size_t)(at - kernel) : strlen(kernel));
    if (at) ct_str_printf(&text, "%s%s", to, at + strlen(from));
    ct_arena arena;
    ct_arena_init(&arena);
    mosaic_module *module;
    ct_status *status = mosaic_parse(&arena, text.data, text.length, &module);
    if (!status) status = mosaic_run(module, 1, &x, 1, &y);
    ct_arena_deinit(&arena);
    ct_str_deinit(&text);
    return status;
}

static ct_status *run_sample(sample *s)
{
    ct_status *status = run_edited(ct_mosaic_text(s->k), NULL, NULL);
    ct_mosaic_free(s->k);
    return status;
}

/* y[i] = sum over j of x[j] * (i + 1), in scratch */
static void emit_sum(sample *s)
{
    if_at(s, s->j, 0);
    store(s, ct_mosaic_full(s->k, CT_MOSAIC_F32, 8, 128, 0), s->scratch);
    ct_mosaic_end(s->k);
    store(s, ct_mosaic_add(s->k, load(s, s->scratch), load(s, s->x)), s->scratch);
    if_at(s, s->j, 2);
    store(s, load(s, s->scratch), s->y);
    ct_mosaic_end(s->k);
}

static void test_sum(void **state)
{
    (void)state;
    for (int parallel = 0; parallel < 2; parallel++) {
        sample s = {0};
        begin(&s, parallel);
        emit_sum(&s);
        expect_ok(run_sample(&s));
        for (int i = 0; i < 2 * 8 * COLUMNS; i++) {
            int row = i / COLUMNS % 8;
            assert_true(y_values[i] == (float)(3 * row + 8 + 16));
        }
    }
}

static void test_windows_beyond_the_end(void **state)
{
    (void)state;
    sample s = {0};
    begin(&s, false);
    emit_sum(&s);
    memset(y_values, 0, sizeof(y_values));
    missing_rows = 3;
    expect_ok(run_sample(&s));
    missing_rows = 0;
    for (int row = 0; row < 2 * 8; row++) {
        float found = y_values[row * COLUMNS];
        if (row >= 2 * 8 - 3)
            assert_true(found == 0.0f);
        else if (row >= 5 && row < 8)
            assert_true(isnan(found));
        else
            assert_true(found == (float)(3 * (row % 8) + 8 + 16));
    }
}

/* ---- mistakes ---- */

static void test_windows_that_leave(void **state)
{
    (void)state;
    sample s = {.x_block = 1};
    begin(&s, false);
    emit_sum(&s);
    expect_error(run_sample(&s), CT_CODE_INVALID_ARGUMENT, "window 0 leaves its array: block 3 of dim 0, of size 24");
    s = (sample){.y_block = -1};
    begin(&s, false);
    emit_sum(&s);
    expect_error(run_sample(&s), CT_CODE_INVALID_ARGUMENT, "window 1 leaves its array: block -1");
}

static void test_tile_that_leaves(void **state)
{
    (void)state;
    sample s = {0};
    begin(&s, false);
    int64_t place[3] = {1, 8, 128};
    ct_mosaic_value deep = ct_mosaic_scratch(s.k, CT_MOSAIC_F32, 3, place);
    ct_mosaic_store(s.k, load(&s, s.x), deep, &s.i, 0, 0); /* i is 1 in the second half */
    store(&s, load(&s, s.x), s.y);
    expect_error(run_sample(&s), CT_CODE_INVALID_ARGUMENT, "[1, 2) leaves dim 0 of size 1");
}

static void test_uninitialised(void **state)
{
    (void)state;
    sample s = {0};
    begin(&s, false);
    store(&s, ct_mosaic_add(s.k, load(&s, s.scratch), load(&s, s.x)), s.scratch);
    store(&s, load(&s, s.scratch), s.y);
    expect_error(run_sample(&s), CT_CODE_INVALID_ARGUMENT, "element 0 is read and was never written");

    s = (sample){0}; /* scratch of one parallel index is not that of the next */
    begin(&s, true);
    if_at(&s, s.i, 0);
    store(&s, load(&s, s.x), s.scratch);
    ct_mosaic_end(s.k);
    store(&s, load(&s, s.scratch), s.y);
    expect_error(run_sample(&s), CT_CODE_INVALID_ARGUMENT, "at step 3 of sample");

    s = (sample){0};
    begin(&s, false);
    store(&s, ct_mosaic_add(s.k, load(&s, s.y), load(&s, s.x)), s.y);
    expect_error(run_sample(&s), CT_CODE_INVALID_ARGUMENT, "is read and was never written");
}

static void test_output_order(void **state)
{
    (void)state;
    sample s = {.y_by_j = true};
    begin(&s, false);
    if_at(&s, s.j, 2); /* keeps within the array of two blocks */
    ct_mosaic_end(s.k);
    store(&s, load(&s, s.x), s.y);
    expect_error(run_sample(&s), CT_CODE_INVALID_ARGUMENT, "window 1 leaves its array: block 2");

    s = (sample){0};
    begin(&s, false);
    ct_mosaic_store(s.k, ct_mosaic_full(s.k, CT_MOSAIC_F32, 4, 128, 0), s.y, NULL, 0, 0);
    expect_error(run_sample(&s), CT_CODE_INVALID_ARGUMENT, "output 0 leaves block 0 with element 512 not written");
}

/* y's window goes 0 1 0 1 0 1 */
static void place_back_and_forth(ct_mosaic *k, const void *context, ct_mosaic_value *out_blocks)
{
    const sample *s = context;
    ct_mosaic_value half = ct_mosaic_mul(k, ct_mosaic_div(k, s->j, ct_mosaic_int(k, 2)), ct_mosaic_int(k, 2));
    out_blocks[0] = ct_mosaic_sub(k, s->j, half);
    out_blocks[1] = ct_mosaic_int(k, 0);
}

static void test_output_visited_again(void **state)
{
    (void)state;
    sample s = {0};
    s.k = ct_mosaic_new("sample");
    s.i = ct_mosaic_grid(s.k, 2, false);
    s.j = ct_mosaic_grid(s.k, 3, false);
    s.x = ct_mosaic_input(s.k, CT_MOSAIC_F32, 2, BLOCK, place_x, &s);
    s.y = ct_mosaic_output(s.k, CT_MOSAIC_F32, 2, BLOCK, place_back_and_forth, &s);
    store(&s, load(&s, s.x), s.y);
    expect_error(run_sample(&s), CT_CODE_INVALID_ARGUMENT, "output 0 comes back to block 0; at step 2 of sample");

    s = (sample){0}; /* both cores would write it */
    s.k = ct_mosaic_new("sample");
    s.j = ct_mosaic_grid(s.k, 2, true);
    s.i = ct_mosaic_grid(s.k, 1, false);
    s.x = ct_mosaic_input(s.k, CT_MOSAIC_F32, 2, BLOCK, place_x, &s);
    s.y = ct_mosaic_output(s.k, CT_MOSAIC_F32, 2, BLOCK, place_y, &s);
    store(&s, load(&s, s.x), s.y);
    expect_error(run_sample(&s), CT_CODE_INVALID_ARGUMENT, "output 0 comes back to block 0");

    s = (sample){0}; /* block 1 is never shown */
    s.k = ct_mosaic_new("sample");
    s.j = ct_mosaic_grid(s.k, 3, false);
    s.i = ct_mosaic_grid(s.k, 1, false);
    s.x = ct_mosaic_input(s.k, CT_MOSAIC_F32, 2, BLOCK, place_x, &s);
    s.y = ct_mosaic_output(s.k, CT_MOSAIC_F32, 2, BLOCK, place_y, &s);
    store(&s, load(&s, s.x), s.y);
    expect_error(run_sample(&s), CT_CODE_INVALID_ARGUMENT, "output 0 never visits block 1");
}

/* Text that no builder would write. */
static void test_wrong_text(void **state)
{
    (void)state;
    sample s = {0};
    begin(&s, false);
    emit_sum(&s);
    static const struct {
        const char *from, *to, *problem;
    } rows[] = {
        {"vector<8x128xf32>} : () -> vector<8x128xf32>", "vector<8x128xf32>} : () -> vector<8x128xi32>",
         "operand 0 of tpu.vector_store is of another type"},
        {"arith.addf", "arith.addi", "has no attribute fastmath"},
        {"stable_mosaic.arith.addf", "stable_mosaic.arith.powf", "an op that kernels have not"},
        {"version = 15", "version = 16", "wanted }) {stable_mosaic.version = 15"},
        {"window_bounds = array<i64: 8, 128>", "window_bounds = array<i64: 8, 64>", "window 0 is of another size"},
        {"scratch_operands = 1", "scratch_operands = 0", "5 arguments for 2 indices"},
        {"iteration_bounds = array<i64: 2, 3>", "iteration_bounds = array<i64: 2, 4>", "leaves its array"},
        {"predicate = 0", "predicate = 9", "an unknown predicate"},
        {"operandSegmentSizes = array<i32: 1, 1, 2, 0>", "operandSegmentSizes = array<i32: 1, 1, 1, 0>",
         "attributes that do not fit"},
    };
    const char *text = ct_mosaic_text(s.k);
    for (size_t i = 0; i < CT_COUNT(rows); i++)
        expect_error(run_edited(text, rows[i].from, rows[i].to), CT_CODE_INVALID_ARGUMENT, rows[i].problem);
    ct_mosaic_free(s.k);
}

/* A value made in a branch and used after it. */
static void test_scope(void **state)
{
    (void)state;
    sample s = {0};
    begin(&s, false);
    if_at(&s, s.j, 0);
    ct_mosaic_value inside = load(&s, s.x);
    ct_mosaic_end(s.k);
    store(&s, inside, s.y);
    expect_error(run_sample(&s), CT_CODE_INVALID_ARGUMENT, "is not in scope");
}

/* ---- ops ---- */

/* Each op once, its result in y. */
static double first_of(ct_mosaic_value (*build)(const sample *s), int row, int column)
{
    sample s = {0};
    begin(&s, false);
    store(&s, build(&s), s.y);
    expect_ok(run_sample(&s));
    return (double)y_values[row * COLUMNS + column];
}

static ct_mosaic_value scalar(const sample *s, double value)
{
    return ct_mosaic_float(s->k, value);
}

static ct_mosaic_value as_floats(const sample *s, ct_mosaic_value which)
{
    return ct_mosaic_select(s->k, which, scalar(s, 1), scalar(s, 0));
}

static ct_mosaic_value build_bf16(const sample *s)
{
    ct_mosaic_value x = ct_mosaic_full(s->k, CT_MOSAIC_F32, 8, 128, 1.00390625); /* 1 + 2^-8: a tie, to even */
    return ct_mosaic_convert(s->k, ct_mosaic_convert(s->k, x, CT_MOSAIC_BF16), CT_MOSAIC_F32);
}

static ct_mosaic_value build_triangle(const sample *s)
{
    ct_mosaic_value rows = ct_mosaic_iota(s->k, 8, 128, 0), columns = ct_mosaic_iota(s->k, 8, 128, 1);
    return as_floats(s, ct_mosaic_compare(s->k, CT_MOSAIC_LE, columns, rows));
}

static ct_mosaic_value build_matmul(const sample *s) /* rows of x are their number: sum over 128 of row * row' */
{
    ct_mosaic_value x = load(s, s->x);
    ct_mosaic_value square = ct_mosaic_matmul(s->k, x, 1, x, 1); /* [8 8] */
    return ct_mosaic_matmul(s->k, square, 0, ct_mosaic_full(s->k, CT_MOSAIC_F32, 8, 128, 1), 0);
}

static ct_mosaic_value build_sums(const sample *s)
{
    ct_mosaic_value x = build_triangle(s);
    ct_mosaic_value sum = ct_mosaic_add(s->k, ct_mosaic_row_sum(s->k, x), ct_mosaic_column_sum(s->k, x));
    return ct_mosaic_add(s->k, sum, ct_mosaic_row_max(s->k, x));
}

static ct_mosaic_value build_functions(const sample *s)
{
    ct_mosaic_value x = ct_mosaic_full(s->k, CT_MOSAIC_F32, 8, 128, 3);
    ct_mosaic_value y = ct_mosaic_log(s->k, ct_mosaic_exp2(s->k, x));
    return ct_mosaic_sub(s->k, y, ct_mosaic_tanh(s->k, x));
}

static ct_mosaic_value build_transpose(const sample *s)
{
    ct_mosaic_value x = ct_mosaic_broadcast(s->k, load(s, s->x), 8, 128), turned = ct_mosaic_transpose(s->k, x);
    return ct_mosaic_broadcast(s->k, ct_mosaic_slice(s->k, ct_mosaic_transpose(s->k, turned), 8, 1), 8, 128);
}

static ct_mosaic_value build_infinity(const sample *s)
{
    ct_mosaic_value x = ct_mosaic_full(s->k, CT_MOSAIC_F32, 8, 128, -INFINITY);
    return ct_mosaic_max(s->k, x, ct_mosaic_div(s->k, scalar(s, 1), scalar(s, -4)));
}

static void test_ops(void **state)
{
    (void)state;
    assert_true(first_of(build_bf16, 0, 0) == 1.0);
    assert_true(first_of(build_triangle, 3, 3) == 1.0 && y_values[3 * COLUMNS + 4] == 0.0f);
    /* the last x is of rows 16 .. 23: column 1 of the square is 17 * 128 times their sum, 156 */
    assert_true(first_of(build_matmul, 1, 5) == 17.0 * 128 * 156);
    assert_true(first_of(build_sums, 2, 1) == 3 + 7 + 1);
    assert_true(fabs(first_of(build_functions, 7, 127) - (3 * log(2) - tanh(3))) < 1e-6);
    assert_true(first_of(build_transpose, 5, 9) == 21);
    assert_true(first_of(build_infinity, 0, 1) == -0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum),
        cmocka_unit_test(test_windows_beyond_the_end),
        cmocka_unit_test(test_windows_that_leave),
        cmocka_unit_test(test_tile_that_leaves),
        cmocka_unit_test(test_uninitialised),
        cmocka_unit_test(test_output_order),
        cmocka_unit_test(test_output_visited_again),
        cmocka_unit_test(test_wrong_text),
        cmocka_unit_test(test_scope),
        cmocka_unit_test(test_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
