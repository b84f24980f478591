/* The kernels that recipes ask for, by flag and device. */
#include "train/setup.h"

#include "base/testing.h"

#define MODEL "[model]\nname = \"qwen3\"\nflavor = \"debugmodel\"\n"

static ct_recipe *parse(const char *text)
{
    ct_recipe *recipe;
    expect_ok(ct_recipe_parse("r.toml", text, strlen(text), &(ct_recipe_load_opts){0}, &recipe));
    return recipe;
}

static void test_kernels(void **state)
{
    (void)state;
    ct_recipe *recipe = parse(MODEL);
    ct_kernels kernels = ct_recipe_kernels(recipe, NULL);
    assert_int_equal(kernels.attention, CT_KERNEL_AUTO);
    assert_int_equal(kernels.loss, CT_KERNEL_AUTO);
    assert_string_equal(kernels.platform, "cpu");
    assert_null(kernels.chip);
    assert_int_equal(kernels.attention_blocks.q, 0);
    kernels = ct_recipe_kernels(recipe, "TPU v5 lite"); /* whatever device.platform says */
    assert_string_equal(kernels.platform, "tpu");
    assert_string_equal(kernels.chip, "v5e");
    ct_recipe_free(recipe);
}

static void test_flags_of_the_fork(void **state)
{
    (void)state;
    ct_recipe *recipe = parse(MODEL "[splash_attention_kernel]\nuse_splash_attention_kernel = true\n"
                                    "sa_block_q = 1024\nsa_block_kv_dq = 256\nsa_use_fused_bwd_kernel = false\n"
                                    "[loss_kernel]\nuse_loss_kernel = true\nloss_v_block_size = 2048\n");
    ct_kernels kernels = ct_recipe_kernels(recipe, NULL);
    assert_int_equal(kernels.attention, CT_KERNEL_PORTABLE);
    assert_int_equal(kernels.loss, CT_KERNEL_PORTABLE);
    assert_int_equal(kernels.attention_blocks.q, 1024);
    assert_int_equal(kernels.attention_blocks.kv_dq, 256);
    assert_true(kernels.attention_blocks.separate_backward);
    assert_int_equal(kernels.loss_blocks.vocab, 2048);
    kernels = ct_recipe_kernels(recipe, "TPU7x"); /* the best there is */
    assert_int_equal(kernels.attention, CT_KERNEL_MOSAIC);
    assert_int_equal(kernels.loss, CT_KERNEL_AUTO);
    ct_recipe_free(recipe);

    recipe = parse(MODEL "[loss_kernel]\nuse_loss_kernel = true\nenable_pallas_loss_kernel = false\n");
    assert_int_equal(ct_recipe_kernels(recipe, "TPU7x").loss, CT_KERNEL_PORTABLE);
    ct_recipe_free(recipe);

    recipe = parse(MODEL "[kernels]\nattention = \"mosaic\"\nloss = \"definition\"\n");
    kernels = ct_recipe_kernels(recipe, NULL);
    assert_int_equal(kernels.attention, CT_KERNEL_MOSAIC);
    assert_int_equal(kernels.loss, CT_KERNEL_DEFINITION);
    ct_recipe_free(recipe);
}

static void test_text(void **state)
{
    (void)state;
    ct_recipe *recipe = parse(MODEL "[training]\nseq_len = 256\n[kernels]\nattention = \"portable\"\n");
    ct_model *model;
    expect_ok(ct_recipe_model(recipe, &model));
    ct_step_opts step = ct_recipe_step(recipe, NULL, NULL);
    char *text = ct_step_kernels_text(&step, model);
    assert_non_null(strstr(text, "attention portable (asked for), loss "));
    free(text);
    step.kernels.attention = CT_KERNEL_AUTO;
    text = ct_step_kernels_text(&step, model);
    assert_non_null(strstr(text, "attention definition (fewer than "));
    free(text);
    ct_model_free(model);
    ct_recipe_free(recipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels), cmocka_unit_test(test_flags_of_the_fork),
                                       cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
