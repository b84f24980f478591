/* HLO text: what XLA's print holds, instruction by instruction; the binary forms; what is refused, and how. */
#include "pjrt/hlo_text.h"

#include "pjrt/collectives.h"
#include "pjrt/hlo_text_fuzz.c" /* its corpus is replayed below */
#include "pjrt/testing.h"

#define CORPUS CT_TEST_CORPORA "/hlo_text/"

static ct_arena arena;

static int set_up(void **state)
{
    (void)state;
    ct_arena_init(&arena);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ct_arena_deinit(&arena);
    return 0;
}

static const ct_hlo_instruction *find(const ct_hlo_module *module, const char *name)
{
    for (size_t c = 0; c < module->num_computations; c++)
        for (size_t i = 0; i < module->computations[c].num_instructions; i++)
            if (!strcmp(module->computations[c].instructions[i].name, name))
                return &module->computations[c].instructions[i];
    fail_msg("no instruction %s", name);
    return NULL;
}

static size_t count_all(const ct_hlo_module *module)
{
    size_t count = 0;
    for (size_t c = 0; c < module->num_computations; c++) count += module->computations[c].num_instructions;
    return count;
}

/* Instructions that span lines, with braces in strings and metadata that goes on with "}}"; a computation that ends in
 * "}, execution_thread"; tables before the first one. A reader of lines finds fewer. */
static void test_loop(void **state)
{
    (void)state;
    ct_hlo_module *module;
    expect_ok(ct_hlo_read_file(&arena, CORPUS "loop.txt", &module));
    assert_string_equal(module->name, "loop");
    assert_true(module->is_scheduled);
    assert_int_equal(module->num_computations, 4);
    assert_int_equal(count_all(module), 3 + 9 + 4 + 5);
    assert_string_equal(module->entry->name, "main");
    assert_string_equal(module->entry->root->name, "result");
    assert_string_equal(module->entry->root->shape, "f32[8,16]{1,0:S(5)}");
    assert_string_equal(find(module, "add.1")->op_name, "sum \"of\" {both");
    assert_string_equal(find(module, "result.1")->shape, "(s32[], f32[8,16]{1,0})");
    assert_int_equal(find(module, "result.1")->num_operands, 2);
    assert_string_equal(find(module, "all-reduce-done")->op_name, "layers/while/body");

    const ct_hlo_instruction *loop = find(module, "while.1"), *reduce = find(module, "all-reduce-start");
    assert_int_equal(loop->num_calls, 2);
    assert_string_equal(loop->calls[0]->name, "body");
    assert_string_equal(loop->calls[1]->name, "condition");
    assert_int_equal(ct_hlo_loop_turns(loop), 7);
    assert_ptr_equal(loop->operands[0], find(module, "start"));
    assert_string_equal(find(module, "less")->direction, "LT");
    assert_int_equal(find(module, "i.2")->index, 0);
    assert_int_equal(find(module, "bound")->integer, 7);

    assert_int_equal(reduce->num_groups, 2);
    assert_int_equal(reduce->group_size, 2);
    assert_int_equal(reduce->groups[2], 2);
    assert_non_null(strstr(reduce->backend_config, "a \\\"}\\\" in a string"));
    ct_hlo_traffic traffic;
    ct_hlo_traffic_find(&arena, module, 4, &traffic);
    assert_int_equal(traffic.num_items, 1);
    assert_int_equal(traffic.items[0].times, 7);
    assert_true(traffic.estimated_cycles == 7 * 1750);
}

static void test_plain_names(void **state)
{
    (void)state;
    ct_hlo_module *module;
    expect_ok(ct_hlo_read_file(&arena, CORPUS "plain_names.txt", &module));
    assert_false(module->is_scheduled);
    assert_int_equal(find(module, "g")->num_groups, 0); /* all devices */
    /* 'x' of 2, and of 'y' of 4 the part of 2 behind the first 2: 0, 1 and what is 4 further on */
    const int64_t groups[] = {0, 1, 4, 5, 2, 3, 6, 7};
    const ct_hlo_instruction *scatter = find(module, "s"), *call = find(module, "u");
    assert_int_equal(scatter->group_size, 4);
    assert_int_equal(scatter->num_groups, 2);
    assert_memory_equal(scatter->groups, groups, sizeof(groups));
    assert_int_equal(find(module, "k")->num_groups, 4);
    assert_int_equal(find(module, "k")->group_size, 2);
    const ct_hlo_instruction *negate = find(module, "r");
    assert_string_equal(negate->operands[0]->opcode, "get-tuple-element"); /* "u#1" */
    assert_string_equal(negate->operands[0]->shape, "u8[0]{0}");
    assert_int_equal(negate->operands[0]->index, 1);
    assert_ptr_equal(negate->operands[0]->operands[0], call);
    assert_string_equal(call->details, "target=with \"quotes\"");
    assert_string_equal(call->backend_config, "{\"a\": 1}");
}

static void test_async(void **state)
{
    (void)state;
    ct_hlo_module *module;
    expect_ok(ct_hlo_read_file(&arena, CORPUS "async.txt", &module));
    assert_string_equal(find(module, "s")->opcode, "custom-call-start");
    assert_string_equal(find(module, "s")->calls[0]->name, "gather");
    ct_hlo_traffic traffic;
    ct_hlo_traffic_find(&arena, module, 4, &traffic);
    assert_int_equal(traffic.num_items, 1);
    assert_string_equal(traffic.items[0].emitter, "sparse core");
    assert_true(traffic.items[0].is_async);
    assert_int_equal(traffic.items[0].wire_bytes, 48);
}

/* The same module, wrapped and bare. */
static void test_binary(void **state)
{
    (void)state;
    static const char text[] = "module @m { func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
                               "%0 = stablehlo.sine %x : tensor<8xf32>\n return %0 : tensor<8xf32> } }\n";
    ct_client *client = ct_test_client(1);
    ct_executable *executable = ct_test_compile(client, text, &(ct_compile_opts){0});
    char format[32], *bytes;
    size_t size;
    expect_ok(ct_executable_optimized(executable, format, &bytes, &size));
    ct_hlo_module *module, *bare;
    expect_ok(ct_hlo_parse(&arena, bytes, size, "wrapped", &module));
    assert_int_equal(bytes[0], 0x0a); /* field 1, its length as a varint, the module */
    size_t at = 1, length = 0, shift = 0;
    do length |= (size_t)(bytes[at] & 127) << shift, shift += 7;
    while (bytes[at++] & 128);
    expect_ok(ct_hlo_parse(&arena, bytes + at, length, "bare", &bare));
    assert_string_equal(bare->name, module->name);
    assert_int_equal(count_all(bare), count_all(module));
    expect_error(ct_hlo_parse(&arena, bytes + at, length / 2, "cut.pb", &bare), CT_CODE_DATA_LOSS, "cut.pb");
    free(bytes);
    ct_executable_free(executable);
    ct_client_free(client);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"HloModule m\nENTRY e {\n  a = f32[] add(b, b)\n}\n",
         "m.txt:3: HLO text: a uses b, which does not stand above"},
        {"HloModule m\nENTRY e {\n  a = f32[] call(), to_apply=f\n}\n", "m.txt:3: HLO text: a calls f, which is not"},
        {"HloModule m\nENTRY e {\n  a = f32[] parameter(0\n}\n", "wanted"},
        {"HloModule m\nENTRY e {\n  a f32[] parameter(0)\n}\n", "m.txt:3: HLO text: wanted an instruction"},
        {"HloModule m\nENTRY e {\n}\n", "wanted an instruction"},
        {"HloModule m\n", "without a computation"},
        {"HloModule m\ne {\n  a = f32[] parameter(0)\n  b = f32[] all-reduce(a), replica_groups={{0,1},{2}}\n}\n",
         "groups of equal sizes"},
        {"HloModule m\ne {\n  a = f32[] parameter(0)\n  b = f32[] all-reduce(a), replica_groups=[2,3]<=[8]\n}\n",
         "2 groups of 3 of 8 devices"},
        {"HloModule m\ne {\n  a = f32[] parameter(0)\n  b = f32[] all-reduce(a), replica_groups=mesh['x'=2] {'y'}\n}\n",
         "mesh['x'=2] {'x'}"},
        {"HloModule m\ne {\n  a = (f32[], s32[]) parameter(0)\n  b = s32[] negate(a#2)\n}\n", "b uses a part 2 of a"},
        {"module @jit_step {\n}\n", "is StableHLO"},
    };
    for (size_t i = 0; i < CT_COUNT(rows); i++) {
        ct_hlo_module *module;
        ct_status *status = ct_hlo_parse(&arena, rows[i].text, strlen(rows[i].text), "m.txt", &module);
        assert_null(module);
        if (!strstr(ct_status_message(status), rows[i].message))
            fail_msg("wanted \"%s\", found: %s", rows[i].message, ct_status_message(status));
        ct_status_free(status);
    }
    ct_hlo_module *module;
    expect_error(ct_hlo_read_file(&arena, CORPUS "cycle.txt", &module), CT_CODE_DATA_LOSS, "calls itself");
}

static void test_corpus(void **state)
{
    (void)state;
    ct_test_replay(CT_TEST_CORPORA, "hlo_text", LLVMFuzzerTestOneInput);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop),   cmocka_unit_test(test_plain_names), cmocka_unit_test(test_async),
        cmocka_unit_test(test_binary), cmocka_unit_test(test_refused),     cmocka_unit_test(test_corpus),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
