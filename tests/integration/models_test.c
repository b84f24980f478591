/* Models that no golden file holds, against the plain C reference: other widths, head counts, head sizes, vocabularies,
 * tied or not, rope scaled or not, folders of several files and of bf16. `ctitan score` gives logits, loss and
 * gradients; two steps of `ctitan train` give losses, norms and AdamW's parameters.
 */
#include <math.h>

#include "reference.h"
#include "support.h"

enum { BATCH = 2, SEQ = 11, STEPS = 2, NUM_DIFFERENCES = 6 };
static const double FORWARD = 1e-5, GRADIENTS = 1e-4, PARAMETERS = 2e-4;
static const double LR = 1e-2, BETA1 = 0.9, BETA2 = 0.95, EPS = 1e-3, DECAY = 0.1, MAX_NORM = 0.5;

typedef struct model_case {
    const char *name;
    ct_test_config config;
    ct_dtype dtype; /* of the folder */
    int num_shards;
    bool is_old, unrolled;
} model_case;

static const model_case CASES[] = {
    {"llama-gqa3-scaled",
     {.dim = 40,
      .num_layers = 3,
      .num_heads = 6,
      .num_kv_heads = 2,
      .head_dim = 10,
      .ffn_dim = 52,
      .vocab_size = 131,
      .norm_eps = 1e-5,
      .theta = 10000,
      .factor = 4,
      .low_freq_factor = 1,
      .high_freq_factor = 4,
      .original_length = 16},
     CT_DTYPE_F32,
     1,
     false,
     false},
    {"llama-mha-tied-old",
     {.dim = 48,
      .num_layers = 1,
      .num_heads = 4,
      .num_kv_heads = 4,
      .head_dim = 12,
      .ffn_dim = 31,
      .vocab_size = 97,
      .tied = true,
      .norm_eps = 1e-6,
      .theta = 500000},
     CT_DTYPE_F16,
     1,
     true,
     true},
    {"qwen3-mqa-untied-sharded",
     {.is_qwen3 = true,
      .dim = 20,
      .num_layers = 2,
      .num_heads = 6,
      .num_kv_heads = 1,
      .head_dim = 8,
      .ffn_dim = 37,
      .vocab_size = 301,
      .norm_eps = 1e-6,
      .theta = 1000000},
     CT_DTYPE_BF16,
     3,
     false,
     true},
    {"qwen3-mha-scaled-old",
     {.is_qwen3 = true,
      .dim = 36,
      .num_layers = 2,
      .num_heads = 5,
      .num_kv_heads = 5,
      .head_dim = 4,
      .ffn_dim = 64,
      .vocab_size = 59,
      .tied = true,
      .norm_eps = 1e-5,
      .theta = 20000,
      .factor = 8,
      .low_freq_factor = 1,
      .high_freq_factor = 2,
      .original_length = 32},
     CT_DTYPE_F32,
     2,
     true,
     false},
};

/* Random ids; labels are the next ids, of which every fifth is ignored. */
typedef struct batches {
    int32_t rows[STEPS][BATCH][SEQ + 1], tokens[STEPS][BATCH * SEQ], labels[STEPS][BATCH * SEQ];
} batches;

static char *write_batches(const model_case *c, uint32_t seed, batches *b)
{
    uint32_t index = 0;
    int32_t vocab = c->config.vocab_size;
    for (int step = 0; step < STEPS; step++)
        for (int row = 0; row < BATCH; row++) {
            int32_t *ids = b->rows[step][row];
            for (int p = 0; p <= SEQ; p++)
                ids[p] = CT_MIN(vocab - 1, (int32_t)((ct_test_random(seed, index++) + 1) / 2 * vocab));
            for (int p = 0; p < SEQ; p++) {
                b->tokens[step][row * SEQ + p] = ids[p];
                b->labels[step][row * SEQ + p] = (p + row) % 5 == 0 ? -100 : ids[p + 1];
            }
        }
    ct_safetensors_entry entries[2] = {
        {"tokens", {.dtype = CT_DTYPE_S32, .rank = 3, .sizes = {STEPS, BATCH, SEQ + 1}, .data = b->rows}},
        {"labels", {.dtype = CT_DTYPE_S32, .rank = 3, .sizes = {STEPS, BATCH, SEQ}, .data = b->labels}}};
    char *path = ct_test_path("%s.tokens.safetensors", c->name);
    expect_ok(ct_safetensors_save(path, entries, 2));
    return path;
}

/* Some coordinates of the gradient against differences of the reference's loss. */
static double difference_error(ct_test_model *model, const batches *b, int index, ct_test_values gradient)
{
    ct_test_weight *weight = &model->weights[index];
    const double h = 1e-5;
    double largest = 0, worst = 0;
    for (int64_t i = 0; i < gradient.count; i++) largest = fmax(largest, fabs(gradient.data[i]));
    for (uint32_t i = 0; i < NUM_DIFFERENCES; i++) {
        int64_t at = (int64_t)((ct_test_random((uint32_t)index, i) + 1) / 2 * (double)weight->count);
        double value = weight->values[at];
        weight->values[at] = value + h;
        double above = ct_test_model_loss(model, b->tokens[0], b->labels[0], BATCH, SEQ, NULL);
        weight->values[at] = value - h;
        double below = ct_test_model_loss(model, b->tokens[0], b->labels[0], BATCH, SEQ, NULL);
        weight->values[at] = value;
        worst = fmax(worst, fabs((above - below) / (2 * h) - gradient.data[at]) / largest);
    }
    return worst;
}

/* Scores the first batch; gradients[i] is of weight i, freed by the caller. */
static double check_score(const model_case *c, ct_test_model *model, const char *folder, const char *tokens,
                          const batches *b, ct_test_values *gradients)
{
    const char *output = ct_test_path("%s.scores.safetensors", c->name);
    ct_test_ok("score --model=%s --tokens=%s --output=%s --logits --gradients", folder, tokens, output);
    ct_safetensors *scores;
    expect_ok(ct_safetensors_open(output, &scores));
    ct_test_values expected = {.count = (int64_t)BATCH * SEQ * c->config.vocab_size};
    expected.data = ct_alloc((size_t)expected.count * sizeof(double));
    double loss = ct_test_model_loss(model, b->tokens[0], b->labels[0], BATCH, SEQ, expected.data);
    ct_test_values logits = ct_test_tensor(scores, "logits"), found = ct_test_tensor(scores, "loss");
    double worst_forward = 0, worst_gradient = 0;
    ct_test_close("logits", logits, expected, FORWARD, &worst_forward);
    ct_test_close("loss", found, (ct_test_values){&loss, 1}, FORWARD, &worst_forward);
    assert_int_equal(ct_safetensors_num_tensors(scores), model->num_weights + 3);
    for (int i = 0; i < model->num_weights; i++) {
        char name[100];
        snprintf(name, sizeof(name), "grad.%s", model->weights[i].name);
        gradients[i] = ct_test_tensor(scores, name);
        assert_int_equal(gradients[i].count, model->weights[i].count);
        double error = difference_error(model, b, i, gradients[i]);
        if (!(error <= GRADIENTS)) fail_msg("%s: the error is %g, allowed is %g", name, error, GRADIENTS);
        worst_gradient = fmax(worst_gradient, error);
    }
    print_message("%s: forward within %.1e, gradients within %.1e\n", c->name, worst_forward, worst_gradient);
    free(logits.data);
    free(found.data);
    free(expected.data);
    ct_safetensors_close(scores);
    return loss;
}

/* The first step of AdamW from zero moments, after clipping, in the reference's weights; the norm before clipping. */
static double adamw_step(ct_test_model *model, const ct_test_values *gradients)
{
    double square = 0;
    for (int i = 0; i < model->num_weights; i++)
        for (int64_t j = 0; j < gradients[i].count; j++) square += gradients[i].data[j] * gradients[i].data[j];
    double norm = sqrt(square), clip = fmin(1, MAX_NORM / (norm + 1e-6));
    for (int i = 0; i < model->num_weights; i++)
        for (int64_t j = 0; j < gradients[i].count; j++) {
            double g = gradients[i].data[j] * clip, *p = &model->weights[i].values[j];
            double m = (1 - BETA1) * g / (1 - BETA1), v = (1 - BETA2) * g * g / (1 - BETA2);
            *p = *p * (1 - LR * DECAY) - LR * m / (sqrt(v) + EPS);
        }
    return norm;
}

static void check_train(const model_case *c, ct_test_model *model, const char *folder, const char *tokens,
                        const batches *b, double loss, const ct_test_values *gradients)
{
    const char *recipe = ct_test_path("%s.toml", c->name), *dump_folder = ct_test_path("%s.run", c->name);
    ct_test_write(recipe,
                  "dump_folder = \"%s\"\n[model]\nname = \"%s\"\nflavor = \"%s\"\nscan_layers = %s\n"
                  "[training]\nlocal_batch_size = %d\nseq_len = %d\nsteps = %d\ndataset = \"tokens\"\n"
                  "dataset_path = \"%s\"\nshuffle = false\nmixed_precision_param = \"float32\"\nmax_norm = %g\n"
                  "[optimizer]\nlr = %g\nbeta1 = %g\nbeta2 = %g\neps = %g\nweight_decay = %g\n"
                  "[lr_scheduler]\nwarmup_steps = 0\ndecay_ratio = 0.0\n[metrics]\nlog_freq = 1\n"
                  "[checkpoint]\nenable = true\ninterval = 1\ninitial_load_path = \"%s\"\ninitial_load_in_hf = true\n",
                  dump_folder, c->config.is_qwen3 ? "qwen3" : "llama3", folder, c->unrolled ? "false" : "true", BATCH,
                  SEQ, STEPS, tokens, MAX_NORM, LR, BETA1, BETA2, EPS, DECAY, folder);
    ct_test_ok("train %s", recipe);
    size_t num_steps;
    ct_test_step *steps = ct_test_metrics(dump_folder, &num_steps);
    assert_int_equal(num_steps, STEPS);
    double norm = adamw_step(model, gradients), worst_forward = 0, worst_parameter = 0;
    assert_true(norm > MAX_NORM);
    double losses[STEPS] = {loss, ct_test_model_loss(model, b->tokens[1], b->labels[1], BATCH, SEQ, NULL)};
    ct_test_close("losses", (ct_test_values){(double[]){steps[0].loss, steps[1].loss}, STEPS},
                  (ct_test_values){losses, STEPS}, FORWARD, &worst_forward);
    ct_test_close("norm", (ct_test_values){&steps[0].grad_norm, 1}, (ct_test_values){&norm, 1}, FORWARD,
                  &worst_forward);
    free(steps);
    ct_checkpoint *checkpoint;
    expect_ok(ct_checkpoint_open(ct_test_path("%s.run/checkpoint", c->name), 1, NULL, &checkpoint));
    for (int i = 0; i < model->num_weights; i++) {
        const ct_test_weight *weight = &model->weights[i];
        ct_test_values found = ct_test_checkpoint_tensor(checkpoint, weight->name);
        ct_test_close(weight->name, found, (ct_test_values){weight->values, weight->count}, PARAMETERS,
                      &worst_parameter);
        free(found.data);
    }
    ct_checkpoint_close(checkpoint);
    print_message("%s: losses and norm within %.1e, parameters within %.1e\n", c->name, worst_forward, worst_parameter);
}

static void test_model(void **state)
{
    const model_case *c = *state;
    uint32_t seed = (uint32_t)(c - CASES) * 100 + 1;
    ct_test_model model = ct_test_model_new(&c->config, seed);
    const char *folder = ct_test_path("%s", c->name);
    ct_test_model_write(&model, folder, c->dtype, c->num_shards, c->is_old);
    static batches b;
    const char *tokens = write_batches(c, seed + 50, &b);
    ct_test_values *gradients = ct_alloc_zeroed((size_t)model.num_weights, sizeof(*gradients));
    double loss = check_score(c, &model, folder, tokens, &b, gradients);
    check_train(c, &model, folder, tokens, &b, loss, gradients);
    for (int i = 0; i < model.num_weights; i++) free(gradients[i].data);
    free(gradients);
    ct_test_model_free(&model);
}

int main(void)
{
    struct CMUnitTest tests[CT_COUNT(CASES)];
    for (size_t i = 0; i < CT_COUNT(CASES); i++)
        tests[i] = (struct CMUnitTest){
            .name = CASES[i].name, .test_func = test_model, .initial_state = (void *)(uintptr_t)&CASES[i]};
    return cmocka_run_group_tests(tests, NULL, ct_test_world_free);
}
