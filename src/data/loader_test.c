#include "base/testing.h"

#include "data/loader.h"
#include "formats/safetensors.h"

/* A dataset of rows [i, i, i], i = 0.., the row numbered bad (if any) with an id outside the vocabulary. */
static ct_dataset *open_rows(const char *folder, int64_t num_rows, int64_t bad)
{
    const char *path = ct_path_join(folder, "tokens.safetensors");
    ct_safetensors_entry entry = {"tokens", ct_array_new(CT_DTYPE_S32, (int64_t[]){num_rows, 3}, 2)};
    for (int64_t i = 0; i < num_rows * 3; i++) ct_array_set(&entry.array, i, i / 3 == bad ? 1e6 : (double)(i / 3));
    expect_ok(ct_safetensors_save(path, &entry, 1));
    ct_array_free(&entry.array);
    ct_dataset *dataset;
    ct_dataset_opts opts = {.paths = &path, .num_paths = 1, .seq_len = 2, .batch_size = 2, .vocab_size = 1000};
    expect_ok(ct_dataset_open(&opts, &dataset));
    free((char *)(uintptr_t)path);
    return dataset;
}

static void test_order_and_position(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    for (int num_prefetch = 1; num_prefetch <= 4; num_prefetch++) {
        ct_dataset *dataset = open_rows(folder, 100, -1);
        ct_batch first;
        ct_batch_init(&first, dataset);
        for (int i = 0; i < 3; i++) expect_ok(ct_dataset_next(dataset, &first));
        ct_batch_deinit(&first);
        ct_loader *loader;
        expect_ok(ct_loader_new(dataset, num_prefetch, &loader));
        for (int32_t i = 3; i < 200; i++) {
            const ct_batch *batch;
            expect_ok(ct_loader_next(loader, &batch));
            assert_int_equal(batch->first_sample, 2 * i);
            assert_non_null(batch->state);
            const int32_t *inputs = batch->inputs.data;
            for (int32_t row = 0; row < 2; row++) assert_int_equal(inputs[2 * row], (2 * i + row) % 100);
        }
        ct_loader_free(loader);
        ct_dataset_close(dataset);
    }
    ct_test_folder_free(folder);
}

static void test_error_comes_in_its_place(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    ct_dataset *dataset = open_rows(folder, 10, 5);
    ct_loader *loader;
    expect_ok(ct_loader_new(dataset, 0, &loader));
    const ct_batch *batch;
    expect_ok(ct_loader_next(loader, &batch));
    expect_ok(ct_loader_next(loader, &batch));
    for (int i = 0; i < 2; i++) {
        expect_error(ct_loader_next(loader, &batch), CT_CODE_OUT_OF_RANGE, "row 5 has 1000000 at 0");
        assert_null(batch);
    }
    ct_loader_free(loader);
    ct_dataset_close(dataset);
    ct_test_folder_free(folder);
}

static void test_free_at_once(void **state)
{
    (void)state;
    char *folder = ct_test_folder_new();
    ct_dataset *dataset = open_rows(folder, 10, -1);
    for (int i = 0; i < 50; i++) {
        ct_loader *loader;
        expect_ok(ct_loader_new(dataset, 3, &loader));
        ct_loader_free(loader);
    }
    ct_dataset_close(dataset);
    ct_test_folder_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_position),
        cmocka_unit_test(test_error_comes_in_its_place),
        cmocka_unit_test(test_free_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
