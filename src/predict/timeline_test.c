/* The timeline: what overlaps, what is exposed, what loops and branches multiply. Times are worked out by hand; an
 * array of 4,608,000 bytes takes 25.6 us along one axis of v6e:2x2, a line of two: half of it over 90 GB/s. */
#include "predict/testing.h"

#define SUM     "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"
#define ENTRY   "ENTRY main {\n  x = f32[1024,256]{1,0} parameter(0)\n  p = f32[576000]{0} parameter(1)\n"
#define ALONG_Y "{{0,1},{2,3}}"
#define ALONG_X "{{0,2},{1,3}}"
#define GATHER(name, groups)                                                                                           \
    "  " name "-s = (f32[576000]{0}, f32[1152000]{0}) all-gather-start(p), dimensions={0}, replica_groups=" groups "\n"
#define DONE(name) "  " name "-d = f32[1152000]{0} all-gather-done(" name "-s)\n"
#define HEAD       "HloModule m, is_scheduled=true\n"

static void test_overlap(void **state)
{
    (void)state;
    /* 20 us of work beside 25.6 us of links: 5.6 exposed. */
    ct_prediction *p = ct_test_predict(HEAD ENTRY GATHER("g", ALONG_Y) CT_TEST_WORK("w", "x", "35000") DONE("g") "}\n");
    expect_near(ct_test_us(p), 25.6);
    expect_near(1e6 * p->groups[CT_PREDICT_COLLECTIVE].at[CT_CHIP_MID], 5.6);
    expect_near(1e6 * p->groups[CT_PREDICT_ELEMENTWISE].at[CT_CHIP_MID], 20);
    assert_int_equal(p->num_collectives, 1);
    assert_string_equal(p->collectives[0].axes, "y");
    assert_true(p->collectives[0].is_async);
    expect_near(1e6 * p->collectives[0].busy.at[CT_CHIP_MID], 25.6);
    expect_near(1e6 * p->collectives[0].exposed.at[CT_CHIP_MID], 5.6);
    expect_near(p->collectives[0].wire_bytes, 2304000);
    ct_test_sums(p);
    /* 40 us of work hide it. */
    p = ct_test_predict(HEAD ENTRY GATHER("g", ALONG_Y) CT_TEST_WORK("w", "x", "70000") DONE("g") "}\n");
    expect_near(ct_test_us(p), 40);
    assert_true(p->collectives[0].exposed.at[CT_CHIP_MID] == 0);
    /* A synchronous one is exposed as a whole. */
    p = ct_test_predict(HEAD ENTRY "  g = f32[1152000]{0} all-gather(p), dimensions={0}, replica_groups=" ALONG_Y
                                   "\n" CT_TEST_WORK("w", "x", "70000") "}\n");
    expect_near(ct_test_us(p), 65.6);
    expect_near(1e6 * p->links_exposed.at[CT_CHIP_MID], 25.6);
    ct_test_sums(p);
}

static void test_links(void **state)
{
    (void)state;
    /* On one axis they take turns, on two they do not. */
    ct_prediction *p = ct_test_predict(HEAD ENTRY GATHER("g", ALONG_Y) GATHER("h", ALONG_Y) DONE("g") DONE("h") "}\n");
    expect_near(ct_test_us(p), 51.2);
    p = ct_test_predict(HEAD ENTRY GATHER("g", ALONG_Y) GATHER("h", ALONG_X) DONE("g") DONE("h") "}\n");
    expect_near(ct_test_us(p), 25.6);
    assert_string_equal(p->collectives[1].axes, "x");
    /* Over both at once, one ring through all four devices: 3/4 of 9,216,000 bytes, half each way round. */
    p = ct_test_predict(HEAD ENTRY
                        "  g = f32[2304000]{0} all-gather(p), dimensions={0}, replica_groups=[1,4]<=[4]\n}\n");
    expect_near(ct_test_us(p), 9216000 * 0.75 / 2 / 90e9 * 1e6);
    assert_string_equal(p->collectives[0].axes, "x+y");
    /* No groups: all devices. */
    ct_prediction *all =
        ct_test_predict(HEAD ENTRY "  g = f32[2304000]{0} all-gather(p), dimensions={0}, replica_groups={}\n}\n");
    expect_near(ct_test_us(all), ct_test_us(p));
}

/* A synchronous one goes before a gather that is under way, which comes so much later; elsewhere it disturbs nothing.
 */
static void test_sync_beside_async(void **state)
{
    (void)state;
#define NOW(groups) "  n = f32[1152000]{0} all-gather(p), dimensions={0}, replica_groups=" groups "\n"
    ct_prediction *p =
        ct_test_predict(HEAD ENTRY GATHER("g", ALONG_Y) NOW(ALONG_Y) CT_TEST_WORK("w", "x", "35000") DONE("g") "}\n");
    expect_near(ct_test_us(p), 51.2);
    expect_near(1e6 * p->collectives[0].exposed.at[CT_CHIP_MID], 5.6);
    expect_near(1e6 * p->collectives[1].exposed.at[CT_CHIP_MID], 25.6);
    p = ct_test_predict(HEAD ENTRY GATHER("g", ALONG_Y) NOW(ALONG_X) CT_TEST_WORK("w", "x", "35000") DONE("g") "}\n");
    expect_near(ct_test_us(p), 45.6);
    assert_true(p->collectives[0].exposed.at[CT_CHIP_MID] == 0);
    ct_test_sums(p);
}

/* The default of libtpu turns a product of a sharded matrix into steps with a permute each way (windowed einsum): each
 * counts, the two directions run at once, and the loop multiplies them. */
static void test_windowed_einsum(void **state)
{
    (void)state;
#define PERMUTE(name, pairs)                                                                                           \
    "  " name "-s = (f32[576000]{0}, f32[576000]{0}) collective-permute-start(p), source_target_pairs=" pairs          \
    "\n  " name "-d = f32[576000]{0} collective-permute-done(" name "-s)\n"
#define UP   "{{0,1},{1,2},{2,3}}"
#define DOWN "{{3,2},{2,1},{1,0}}"
    static const char loop[] = HEAD
        "body {\n  s = (s32[], f32[576000]{0}) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        "  p = f32[576000]{0} get-tuple-element(s), index=1\n  one = s32[] constant(1)\n  n = s32[] add(i, one)\n"
        "  a-s = (f32[576000]{0}, f32[576000]{0}) collective-permute-start(p), source_target_pairs=" UP "\n"
        "  b-s = (f32[576000]{0}, f32[576000]{0}) collective-permute-start(p), source_target_pairs=" DOWN "\n"
        "  a-d = f32[576000]{0} collective-permute-done(a-s)\n  b-d = f32[576000]{0} collective-permute-done(b-s)\n"
        "  ROOT r = (s32[], f32[576000]{0}) tuple(n, b-d)\n}\n"
        "cond {\n  s = (s32[], f32[576000]{0}) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        "  bound = s32[] constant(4)\n  ROOT c = pred[] compare(i, bound), direction=LT\n}\n"
        "ENTRY main {\n  p = f32[576000]{0} parameter(0)\n  zero = s32[] constant(0)\n"
        "  t = (s32[], f32[576000]{0}) tuple(zero, p)\n"
        "  ROOT w = (s32[], f32[576000]{0}) while(t), body=body, condition=cond\n}\n";
    ct_prediction *p = ct_test_predict_on("v6e", "4x1", loop);
    expect_near(ct_test_us(p), 4 * 25.6); /* 2,304,000 bytes over one link, both ways at once */
    assert_int_equal(p->num_collectives, 2);
    expect_near(p->collectives[0].times, 4);
    expect_near(p->wire_bytes[CT_HLO_COLLECTIVE_PERMUTE], 2 * 4 * 2304000.0 * 3 / 4); /* three of four send */
    /* In one direction they queue. */
    p = ct_test_predict_on("v6e", "4x1", HEAD ENTRY PERMUTE("a", UP) PERMUTE("b", UP) "}\n");
    expect_near(ct_test_us(p), 51.2);
    /* On a line the way from the last device to the first is three links long, on a ring one. */
    p = ct_test_predict_on("v6e", "4x1", HEAD ENTRY PERMUTE("a", "{{3,0}}") "}\n");
    expect_near(ct_test_us(p), 25.6);
    p = ct_test_predict_on("v6e", "4x1", HEAD ENTRY PERMUTE("a", "{{3,0},{2,1}}") "}\n");
    expect_near(ct_test_us(p), 51.2); /* the link from 2 to 1 carries both */
}

/* SparseCores: libtpu hides their collectives in called computations of an asynchronous custom call. */
static void test_sparse_cores(void **state)
{
    (void)state;
    static const char called[] = HEAD
        "gather {\n  q = f32[576000]{0} parameter(0)\n  ROOT g = f32[1152000]{0} all-gather(q), dimensions={0}, "
        "replica_groups=" ALONG_Y ", backend_config={\"device_type\":\"DEVICE_TYPE_SPARSECORE\"}\n}, "
        "execution_thread=\"sparsecore\"\n"
        "wrapper {\n  q = f32[576000]{0} parameter(0)\n  ROOT k = f32[1152000]{0} custom-call(q), "
        "custom_call_target=\"TODO(b/522284627)\", called_computations={gather}\n}, execution_thread=\"sparsecore\"\n";
    static const char *const starts[] = {
        "  g-s = ((f32[576000]{0}), f32[1152000]{0}, u32[]) custom-call-start(p), "
        "custom_call_target=\"TODO(b/522284627)\", called_computations={gather}\n",
        "  g-s = ((f32[576000]{0}), f32[1152000]{0}, u32[]) async-start(p), calls=wrapper\n",
    };
    for (size_t i = 0; i < CT_COUNT(starts); i++) {
        ct_prediction *p = ct_test_predict(ct_arena_printf(
            &ct_test_arena, "%s%s%s%s%s", called, ENTRY, starts[i], CT_TEST_WORK("w", "x", "35000"),
            i ? "  g-d = f32[1152000]{0} async-done(g-s)\n}\n" : "  g-d = f32[1152000]{0} custom-call-done(g-s)\n}\n"));
        assert_int_equal(p->num_collectives, 1);
        assert_true(p->collectives[0].is_async);
        expect_near(ct_test_us(p), 25.6);
        expect_near(p->wire_bytes[CT_HLO_COLLECTIVE_ALL_GATHER], 2304000);
    }
    /* A start without operands loads the program; what hands it operands sets it off. */
    ct_prediction *p = ct_test_predict(ct_arena_printf(
        &ct_test_arena, "%s%s%s", called, ENTRY,
        "  g-s = ((), (), (s32[8192]{0})) async-start(), calls=wrapper\n" CT_TEST_WORK(
            "w", "x", "35000") "  g-u = ((f32[576000]{0}), f32[1152000]{0}, (s32[8192]{0})) async-update(g-s, p)\n"
                               "  g-d = f32[1152000]{0} async-done(g-u)\n}\n"));
    expect_near(ct_test_us(p), 45.6);
    assert_int_equal(p->num_collectives, 1);
}

/* libtpu's text has no known_trip_count: turns come from the condition and the first value. */
static void test_loops(void **state)
{
    (void)state;
    static const char text[] = HEAD
        "body {\n  s = (s32[], f32[1024,256]{1,0}) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        "  x = f32[1024,256]{1,0} get-tuple-element(s), index=1\n  one = s32[] constant(1)\n  n = s32[] add(i, "
        "one)\n" CT_TEST_WORK(
            "w", "x", "1750") "  ROOT r = (s32[], f32[1024,256]{1,0}) tuple(n, w)\n}\n"
                              "cond {\n  s = (s32[], f32[1024,256]{1,0}) parameter(0)\n  i = s32[] "
                              "get-tuple-element(s), index=0\n"
                              "  bound = s32[] constant(32)\n  ROOT c = pred[] compare(i, bound), direction=LT\n}\n"
                              "ENTRY main {\n  x = f32[1024,256]{1,0} parameter(0)\n  first = s32[] %s\n"
                              "  t = (s32[], f32[1024,256]{1,0}) tuple(first, x)\n"
                              "  ROOT l = (s32[], f32[1024,256]{1,0}) while(t), body=body, condition=cond\n}\n";
    ct_prediction *p = ct_test_predict(ct_arena_printf(&ct_test_arena, text, "constant(2)"));
    expect_near(ct_test_us(p), 30);
    assert_null(ct_test_unknown(p, "loops"));
    p = ct_test_predict(ct_arena_printf(&ct_test_arena, text, "parameter(1)"));
    expect_near(ct_test_us(p), 1);
    assert_non_null(ct_test_unknown(p, "loops of unknown turns"));
    expect_near(ct_test_unknown(p, "loops of unknown turns")->count, 1);
}

static void test_branches(void **state)
{
    (void)state;
    ct_prediction *p = ct_test_predict(HEAD "short {\n  x = f32[1024,256]{1,0} parameter(0)\n" CT_TEST_WORK(
        "ROOT a", "x",
        "1750") "}\n"
                "long {\n  x = f32[1024,256]{1,0} parameter(0)\n" CT_TEST_WORK(
                    "ROOT b", "x",
                    "17500") "}\n"
                             "ENTRY main {\n  i = s32[] parameter(0)\n  x = f32[1024,256]{1,0} parameter(1)\n"
                             "  ROOT c = f32[1024,256]{1,0} conditional(i, x, x), branch_computations={short, "
                             "long}\n}\n");
    expect_near(ct_test_us(p), 10);
    assert_true(ct_test_noted(p, "dearest of its 2 branches"));
    ct_test_sums(p);
}

static void test_host(void **state)
{
    (void)state;
    /* 16 MB at 16 GB/s: 1 ms, half of it beside work; out and in are two directions. */
    ct_prediction *p = ct_test_predict(
        HEAD "ENTRY main {\n  x = f32[1024,256]{1,0} parameter(0)\n  a = f32[4000000]{0} parameter(1)\n"
             "  b = f32[8,4000000]{1,0:T(8,128)S(5)} parameter(2)\n  z = s32[] constant(0)\n"
             "  out-s = (f32[4000000]{0:S(5)}, f32[4000000]{0}, u32[]) copy-start(a)\n"
             "  in-s = ((f32[8,4000000]{1,0:S(5)}), f32[1,4000000]{1,0}, u32[]) slice-start(b)\n" CT_TEST_WORK(
                 "w", "x", "875000") "  out-d = f32[4000000]{0:S(5)} copy-done(out-s)\n  in-d = f32[1,4000000]{1,0} "
                                     "slice-done(in-s)\n}\n");
    expect_near(ct_test_us(p), 1000);
    expect_near(1e6 * p->groups[CT_PREDICT_HOST].at[CT_CHIP_MID], 500);
    expect_near(p->host_bytes, 32e6 + 4); /* and what a slice's u32 takes */
    ct_test_sums(p);
    /* tpu7x publishes no host link: counted, with its bytes. */
    p = ct_test_predict_on("tpu7x", "2x2x1",
                           HEAD "ENTRY main {\n  a = f32[4000000]{0} parameter(0)\n"
                                "  s = (f32[4000000]{0:S(5)}, f32[4000000]{0}, u32[]) copy-start(a)\n"
                                "  ROOT d = f32[4000000]{0:S(5)} copy-done(s)\n}\n");
    assert_true(p->step.at[CT_CHIP_MID] == 0);
    expect_near(ct_test_unknown(p, "host link")->bytes, 16e6);
}

/* libtpu does a reduce-scatter as one fusion with an all-reduce of the whole array inside: half the bytes of one. */
static void test_hidden_reduce_scatter(void **state)
{
    (void)state;
    static const char inner[] =
        HEAD SUM "scatter {\n  q = f32[1152000]{0} parameter(0)\n  ROOT r = f32[1152000]{0} all-reduce(q), "
                 "replica_groups=" ALONG_Y ", to_apply=sum\n}\nENTRY main {\n  q = f32[1152000]{0} parameter(0)\n";
    ct_prediction *scatter = ct_test_predict(ct_arena_printf(
        &ct_test_arena, "%s%s", inner,
        "  ROOT f = f32[576000]{0} fusion(q), kind=kCustom, calls=scatter, "
        "backend_config={\"collective_algorithm_config\":{\"emitter\":\"SingleInputAllReduceScatterFusion\"}}\n}\n"));
    ct_prediction *reduce = ct_test_predict(
        ct_arena_printf(&ct_test_arena, "%s%s", inner,
                        "  ROOT r = f32[1152000]{0} all-reduce(q), replica_groups=" ALONG_Y ", to_apply=sum\n}\n"));
    expect_near(scatter->wire_bytes[CT_HLO_COLLECTIVE_REDUCE_SCATTER], 2304000);
    assert_true(scatter->wire_bytes[CT_HLO_COLLECTIVE_ALL_REDUCE] == 0);
    expect_near(reduce->wire_bytes[CT_HLO_COLLECTIVE_ALL_REDUCE], 4608000);
    expect_near(ct_test_us(scatter), 25.6);
    expect_near(ct_test_us(reduce), 51.2);
}

/* v5e cuts a gather in steps that are fused with computation: the last one waits for what is left. */
static void test_fused_steps(void **state)
{
    (void)state;
#define STEP(flag)                                                                                                     \
    " all-gather(q), dimensions={0}, replica_groups=" ALONG_Y                                                          \
    ", backend_config={\"async_collective_fusion_config\":{\"flag_start\":\"" flag "\",\"flag_end\":\"8\"}}\n"
#define FUSION(name, operand, callee, config)                                                                          \
    "  " name " = (f32[1152000]{0}, u32[]) fusion(" operand "), kind=kCustom, calls=" callee config "\n"               \
    "  " name "-e = f32[1152000]{0} get-tuple-element(" name "), index=0\n"
#define CYCLES ", backend_config={\"window_config\":{\"estimated_cycles\":\"15000\"}}"
    static const char text[] = HEAD "first {\n  q = f32[576000]{0} parameter(0)\n  ROOT g = f32[1152000]{0}" STEP(
        "-1") "}\n"
              "next {\n  q = f32[1152000]{0} parameter(0)\n  ROOT g = f32[1152000]{0}" STEP(
                  "2") "}\n"
                       "ENTRY main {\n  p = f32[576000]{0} parameter(0)\n" FUSION("a", "p", "first", "")
                           FUSION("b", "a-e", "next", CYCLES) FUSION("c", "b-e", "next", "") "}\n";
    ct_prediction *p = ct_test_predict_on("v5e", "2x2", text);
    assert_int_equal(p->num_collectives, 1);
    expect_near(ct_test_us(p), 51.2); /* 45 GB/s a link; 10 us of them beside the step b */
    expect_near(1e6 * p->collectives[0].exposed.at[CT_CHIP_MID], 41.2);
    ct_test_sums(p);
}

static void test_slices(void **state)
{
    (void)state;
    /* Two slices of four: the gradients' sum is scattered in the slice, summed between, gathered: 6.25% of the wire. */
    ct_torus torus;
    const ct_chip *v6e = ct_chip_find("v6e");
    expect_ok(ct_predict_torus(v6e, "2x2", 0, &torus));
    ct_predict_opts opts = {.chip = v6e, .torus = &torus, .num_devices = 8, .num_slices = 2};
    ct_prediction *p;
    expect_ok(ct_predict(&ct_test_arena,
                         ct_test_module(HEAD SUM
                                        "ENTRY main {\n  q = f32[1152000]{0} parameter(0)\n  ROOT r = "
                                        "f32[1152000]{0} all-reduce(q), replica_groups=[1,8]<=[8], to_apply=sum\n}\n"),
                         &opts, &p));
    double links = 2 * 4608000 * 0.75 / 2 / 90e9, slices = 2 * 4608000.0 / 4 / 2 / 12.5e9;
    expect_near(p->step.at[CT_CHIP_MID], links + slices);
    assert_string_equal(p->collectives[0].axes, "x+y+slices");
    opts.num_devices = 9;
    expect_error(ct_predict(&ct_test_arena, ct_test_module(HEAD ENTRY "}\n"), &opts, &p), CT_CODE_INVALID_ARGUMENT,
                 "9 devices are not 2 equal slices");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sync_beside_async),
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_windowed_einsum),
        cmocka_unit_test(test_sparse_cores),
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_hidden_reduce_scatter),
        cmocka_unit_test(test_fused_steps),
    };
    return cmocka_run_group_tests(tests, ct_test_arena_init, ct_test_arena_deinit);
}
