/* `ctitan plan` on the CPU: what the compiled step takes on one device falls as the shard degree rises, and what it
 * sends is as the report of the sharding says.
 */
#include <ctype.h>

#include "support.h"

/* The number behind a label of the report. */
static int64_t number(const ct_test_run *run, const char *label)
{
    const char *at = strstr(run->out, label);
    if (!at) fail_msg("no \"%s\" in:\n%s", label, run->out);
    for (at += strlen(label); isspace((unsigned char)*at); at++) {
    }
    return strtoll(at, NULL, 10);
}

static void test_shards(void **state)
{
    (void)state;
    int64_t whole = 0;
    for (int devices = 1; devices <= 8; devices *= 2) {
        ct_test_run run =
            ct_test_start("plan " CT_SOURCE_DIR "/recipes/qwen3/debug.toml --device.count=%d --training.seq_len=64 "
                          "--training.local_batch_size=1 --training.global_batch_size=%d",
                          devices, devices);
        ct_test_wait(&run);
        ct_test_expect(&run, 0, "");
        int64_t arguments = number(&run, "\n  arguments"), gathered;
        if (devices == 1) whole = arguments;
        print_message("%d devices: arguments %lld, temporaries %lld bytes\n", devices, (long long)arguments,
                      (long long)number(&run, "\n  temporaries"));
        assert_in_range(arguments, whole / devices, whole / devices * 105 / 100);
        assert_true(number(&run, "in arguments' place") > 99 * arguments / 100); /* the state is donated */
        if (devices > 1) {
            gathered = number(&run, "\n  all_gather");
            assert_true(gathered > 0);
        } else {
            assert_null(strstr(run.out, "\n  all_gather"));
        }
        ct_test_run_free(&run);
    }
}

static int64_t temporaries_at(int64_t seq_len, const char *form)
{
    ct_test_run run = ct_test_start("plan " CT_SOURCE_DIR "/recipes/llama3/debug.toml --training.seq_len=%lld "
                                    "--training.local_batch_size=1 --training.global_batch_size=1 "
                                    "--kernels.attention=%s --kernels.loss=portable",
                                    (long long)seq_len, form);
    ct_test_wait(&run);
    ct_test_expect(&run, 0, "");
    int64_t bytes = number(&run, "\n  temporaries");
    ct_test_run_free(&run);
    return bytes;
}

/* No seq x seq matrix: what a token takes at 128k is what it takes at 2k. */
static void test_linear_in_sequence(void **state)
{
    (void)state;
    static const int64_t lengths[] = {2048, 8192, 32768, 131072};
    double first = 0;
    for (size_t i = 0; i < CT_COUNT(lengths); i++) {
        int64_t bytes = temporaries_at(lengths[i], "portable");
        double per_token = (double)bytes / (double)lengths[i];
        print_message("sequence %lld: temporaries %lld bytes, %.0f per token\n", (long long)lengths[i],
                      (long long)bytes, per_token);
        if (i == 0) first = per_token;
        assert_true(per_token < 1.05 * first);
    }
    /* the test can tell: the definition's matrices are quadratic */
    assert_true((double)temporaries_at(8192, "definition") > 2 * first * 8192);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_linear_in_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
