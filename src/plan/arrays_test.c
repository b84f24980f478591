/* Lifetimes on programs whose fullest point can be told by hand. */
#include "plan/arrays.h"

#include <stdlib.h>
#include <string.h>

#include "base/testing.h"
#include "pjrt/hlo_text.h"
#include "plan/fit.h"

static ct_plan_array *arrays_of(ct_arena *arena, const char *text, size_t *out_count, int64_t *out_total)
{
    ct_hlo_module *module;
    expect_ok(ct_hlo_parse(arena, text, strlen(text), "test", &module));
    ct_plan_array *arrays = ct__plan_arrays(arena, module, out_count);
    *out_total = 0;
    for (size_t i = 0; i < *out_count; i++) {
        *out_total += arrays[i].bytes;
        if (i) assert_true(arrays[i].bytes <= arrays[i - 1].bytes);
    }
    return arrays;
}

static const ct_plan_array *find(const ct_plan_array *arrays, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(arrays[i].name, name)) return &arrays[i];
    return NULL;
}

/* a and b live together, then c alone; what is updated is no copy; other memory does not count. */
static void test_straight(void **state)
{
    (void)state;
    static const char text[] = "HloModule m, is_scheduled=true\n\n"
                               "ENTRY %main (p: f32[100]) -> f32[100] {\n"
                               "  %p = f32[100]{0} parameter(0), metadata={op_name=\"weights\"}\n"
                               "  %z = s32[] constant(0)\n"
                               "  %a = f32[1000]{0} broadcast(f32[100]{0} %p), dimensions={0}\n"
                               "  %b = f32[500]{0} slice(f32[1000]{0} %a), slice={[0:500]}\n"
                               "  %far = f32[9000]{0:S(5)} copy(f32[1000]{0} %a)\n"
                               "  %u = f32[1000]{0} dynamic-update-slice(f32[1000]{0} %a, f32[500]{0} %b, s32[] %z)\n"
                               "  %c = f32[200]{0} slice(f32[1000]{0} %u), slice={[0:200]}\n"
                               "  ROOT %r = f32[100]{0} slice(f32[200]{0} %c), slice={[0:100]}\n"
                               "}\n";
    ct_arena arena;
    ct_arena_init(&arena);
    size_t count;
    int64_t total;
    const ct_plan_array *arrays = arrays_of(&arena, text, &count, &total);
    assert_int_equal(total, 4 * (100 + 1000 + 500) + 4); /* p, a, b, z; r lies in p's place */
    assert_string_equal(arrays[0].name, "a");
    assert_string_equal(arrays[0].shape, "f32[1000]");
    const ct_plan_array *weights = find(arrays, count, "weights");
    assert_non_null(weights);
    assert_true(weights->is_argument);
    assert_null(find(arrays, count, "far"));
    assert_null(find(arrays, count, "u"));
    ct_arena_deinit(&arena);
}

/* A loop works in the place of what it is given; what its body needs counts on top of what lives outside. */
static void test_loop(void **state)
{
    (void)state;
    static const char text[] =
        "HloModule m, is_scheduled=true\n\n"
        "%body (t: (s32[], f32[1000])) -> (s32[], f32[1000]) {\n"
        "  %t = (s32[], f32[1000]{0}) parameter(0)\n"
        "  %i = s32[] get-tuple-element((s32[], f32[1000]{0}) %t), index=0\n"
        "  %x = f32[1000]{0} get-tuple-element((s32[], f32[1000]{0}) %t), index=1\n"
        "  %h = f32[3000]{0} broadcast(f32[1000]{0} %x), dimensions={0}, metadata={op_name=\"hidden\"}\n"
        "  %y = f32[1000]{0} slice(f32[3000]{0} %h), slice={[0:1000]}\n"
        "  ROOT %o = (s32[], f32[1000]{0}) tuple(s32[] %i, f32[1000]{0} %y)\n"
        "}\n\n"
        "%cond (c: (s32[], f32[1000])) -> pred[] {\n"
        "  %c = (s32[], f32[1000]{0}) parameter(0)\n"
        "  %j = s32[] get-tuple-element((s32[], f32[1000]{0}) %c), index=0\n"
        "  %n = s32[] constant(4)\n"
        "  ROOT %l = pred[] compare(s32[] %j, s32[] %n), direction=LT\n"
        "}\n\n"
        "ENTRY %main (p: f32[1000], q: f32[50]) -> f32[1000] {\n"
        "  %p = f32[1000]{0} parameter(0), metadata={op_name=\"x\"}\n"
        "  %q = f32[50]{0} parameter(1)\n"
        "  %z = s32[] constant(0)\n"
        "  %w = f32[700]{0} broadcast(f32[50]{0} %q), dimensions={0}\n"
        "  %s = (s32[], f32[1000]{0}) tuple(s32[] %z, f32[1000]{0} %p)\n"
        "  %while = (s32[], f32[1000]{0}) while((s32[], f32[1000]{0}) %s), condition=%cond, body=%body\n"
        "  %e = f32[1000]{0} get-tuple-element((s32[], f32[1000]{0}) %while), index=1\n"
        "  ROOT %r = f32[1000]{0} add(f32[1000]{0} %e, f32[700]{0} %w)\n"
        "}\n";
    ct_arena arena;
    ct_arena_init(&arena);
    size_t count;
    int64_t total;
    const ct_plan_array *arrays = arrays_of(&arena, text, &count, &total);
    assert_int_equal(total, 4 * (1000 + 50 + 1 + 700 + 3000 + 1000)); /* p q z w, and in the body h and y */
    assert_string_equal(arrays[0].name, "hidden");
    ct_arena_deinit(&arena);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *message;
        double wanted_mib, usable_mib;
        bool is_temp, is_kernel;
    } rows[] = {
        {"PJRT_Compile: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO "
         "temporaries "
         "(24.27G) exceeds available HBM (15.75G). HLO module: train_step.",
         24.27 * 1024, 15.75 * 1024, true, false},
        {"the total memory required for HLO temporaries (1.75T) exceeds available HBM (31.24G)", 1792 * 1024,
         31.24 * 1024, true, false},
        {"XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 20.10G of 15.75G hbm. Exceeded "
         "hbm "
         "capacity by 4.35G.",
         20.10 * 1024, 15.75 * 1024, false, false},
        {"PJRT_Compile: E1001: CompileTimeScopedVmemOom:\nRan out of memory in memory space vmem while allocating on "
         "stack "
         "for %layers.5365 = (bf16[384,8192,128]{2,1,0:T(16,128)(2,1)}) custom-call(). Scoped allocation with size "
         "18.60M "
         "and limit 17.12M exceeded scoped vmem limit by 1.47M.",
         18.60, 17.12, false, true},
        {"Ran out of memory in memory space vmem", 0, 0, false, true},
        {"no numbers here", 0, 0, false, false},
        {"Used x of 15.75G hbm", 0, 15.75 * 1024, false, false},
        {"total memory required (", 0, 0, false, false},
    };
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        ct__plan_refusal refusal = ct__plan_parse_refusal(rows[i].message);
        assert_int_equal(refusal.wanted_bytes >> 10, (int64_t)(rows[i].wanted_mib * 1024));
        assert_int_equal(refusal.usable_bytes >> 10, (int64_t)(rows[i].usable_mib * 1024));
        assert_int_equal(refusal.is_temp, rows[i].is_temp);
        assert_int_equal(refusal.is_kernel, rows[i].is_kernel);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_straight),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
