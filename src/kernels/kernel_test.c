/* Which form stands behind auto, and what a graph without kernels gets. */
#include "kernels/kernel.h"

#include "base/testing.h"

static void test_auto(void **state)
{
    (void)state;
    const char *why;
    ct_kernels cpu = {.platform = "cpu"}, tpu = {.platform = "tpu", .chip = "v5e"};
    assert_int_equal(ct_attention_form(&cpu, 16, &why), CT_KERNEL_DEFINITION);
    assert_string_equal(why, "fewer than 512 keys");
    assert_int_equal(ct_attention_form(&cpu, 512, &why), CT_KERNEL_PORTABLE);
    assert_string_equal(why, "512 keys or more");
    assert_int_equal(ct_attention_form(&tpu, 16, &why), CT_KERNEL_MOSAIC);
    assert_int_equal(ct_loss_form(&tpu, 1, 8, &why), CT_KERNEL_MOSAIC);
    assert_string_equal(why, "TPU");
    assert_int_equal(ct_loss_form(&cpu, 16, 256, &why), CT_KERNEL_DEFINITION);
    assert_int_equal(ct_loss_form(&cpu, 1 << 12, 1 << 17, &why), CT_KERNEL_PORTABLE);
    assert_int_equal(ct_loss_form(&cpu, 1, (int64_t)1 << 40, &why), CT_KERNEL_PORTABLE);
}

static void test_asked_for(void **state)
{
    (void)state;
    const char *why;
    for (ct_kernel_form form = CT_KERNEL_DEFINITION; form <= CT_KERNEL_MOSAIC; form++) {
        ct_kernels kernels = {.attention = form, .loss = form, .platform = "tpu"};
        assert_int_equal(ct_attention_form(&kernels, 1, &why), form);
        assert_int_equal(ct_loss_form(&kernels, 1, 1, &why), form);
        assert_string_equal(why, "asked for");
    }
    assert_string_equal(ct_kernel_form_name(CT_KERNEL_AUTO), "auto");
    assert_string_equal(ct_kernel_form_name(CT_KERNEL_MOSAIC), "mosaic");
}

static void test_graph(void **state)
{
    (void)state;
    const char *why;
    ct_graph *graph = ct_graph_new("kernels");
    assert_int_equal(ct_attention_form(ct_kernels_of(graph), 1 << 20, &why), CT_KERNEL_DEFINITION);
    ct_kernels kernels = {.platform = "cpu"};
    ct_kernels_attach(graph, &kernels);
    assert_ptr_equal(ct_kernels_of(graph), &kernels);
    ct_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_auto), cmocka_unit_test(test_asked_for),
                                       cmocka_unit_test(test_graph)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
