#include "base/testing.h"

#include "checkpoint/manifest_fuzz.c" /* its corpus is replayed below */

static void test_corpus(void **state)
{
    (void)state;
    ct_test_replay(CT_TEST_CORPORA, "manifest", LLVMFuzzerTestOneInput);
}

/* A manifest with everything in it comes back as it was. */
static void test_round_trip(void **state)
{
    (void)state;
    ct__manifest_file files[1] = {{"state-00001.safetensors", 200, "0123456789abcdef0123456789abcdef"}};
    const ct_checkpoint_shard shards[2] = {{{0, 0}, {2, 3}}, {{2, 0}, {1, 3}}};
    ct_checkpoint_tensor tensors[1] = {{"w", CT_DTYPE_BF16, 2, {3, 3}, shards, 2}};
    ct__manifest_place places[2] = {{0, 64, "00112233445566778899aabbccddeeff"},
                                    {0, 76, "ffeeddccbbaa99887766554433221100"}},
                       *all[1] = {places};
    ct__manifest manifest = {12, files, 1, tensors, all, 1}, read;
    char *text = ct__manifest_text(&manifest, (ct_json_value){0});
    ct_arena arena;
    ct_json *json;
    ct_arena_init(&arena);
    expect_ok(ct__manifest_parse("m", text, strlen(text), &arena, &read, &json));
    assert_int_equal(read.step, 12);
    assert_int_equal(read.num_files, 1);
    assert_string_equal(read.files[0].name, files[0].name);
    assert_string_equal(read.files[0].hash, files[0].hash);
    assert_int_equal(read.num_tensors, 1);
    assert_string_equal(read.tensors[0].name, "w");
    assert_int_equal(read.tensors[0].dtype, CT_DTYPE_BF16);
    assert_memory_equal(read.tensors[0].shards, shards, sizeof(shards));
    assert_int_equal(read.places[0][1].offset, 76);
    for (int i = 0; i < 2; i++) assert_string_equal(read.places[0][i].hash, places[i].hash);
    ct_json_free(json);
    ct_arena_deinit(&arena);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corpus),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
