/* SentencePiece's tokenizer.model, with ids as its own library gives them: its normalizer, BPE by score or Unigram,
 * runs of unknown characters as one, or bytes.
 *
 * Control pieces (<s>) are special tokens: found in text unless special tokens are text, as in SentencePiece itself.
 */
#include <stdlib.h>
#include <string.h>

#include <sentencepiece.pb-c.h>

#include "base/alloc.h"
#include "tokenizer/readers.h"

static ct_status *read_piece(ct__pipeline *pipeline, const CtSp__Piece *piece, int32_t id)
{
    const char *text = (const char *)piece->piece.data;
    size_t length = piece->piece.len;
    CT_TRY(ct__pipeline_put(pipeline, id, length ? text : "", length));
    text = pipeline->spellings.tokens[id].data;
    switch (piece->type) {
    case CT_SP__PIECE__TYPE__BYTE: {
        int byte = ct__byte_of_spelling(text, length);
        if (byte < 0)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "byte piece %d must be like <0x0A>, but is \"%s\"", id, text);
        pipeline->bpe.byte_ids[byte] = pipeline->unigram.byte_ids[byte] = id;
        return NULL;
    }
    case CT_SP__PIECE__TYPE__UNKNOWN:
        pipeline->bpe.unknown = pipeline->unigram.unknown = id;
        return ct__pipeline_add(pipeline, id, text, length, (ct__added_opts){.special = true});
    case CT_SP__PIECE__TYPE__CONTROL:
        return length ? ct__pipeline_add(pipeline, id, text, length, (ct__added_opts){.special = true}) : NULL;
    case CT_SP__PIECE__TYPE__USER_DEFINED:
        if (length) ct__added_put(&pipeline->kept, text, length, (ct__added_token){.id = id});
        return NULL;
    case CT_SP__PIECE__TYPE__UNUSED:
        return ct_error(CT_CODE_UNIMPLEMENTED, "piece %d, \"%s\", is of type UNUSED, which is not supported", id, text);
    default: return ct__vocab_put(&pipeline->pieces, id, text, length);
    }
}

typedef struct scored {
    float score;
    int32_t id;
} scored;

static int compare_scores(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

/* Merges go by the score of what they give; equal scores are one rank, so that the left one goes first. */
static void add_merges(ct__pipeline *pipeline, const CtSp__Model *model)
{
    size_t count = model->n_pieces;
    scored *order = ct_alloc((count + 1) * sizeof(*order));
    uint32_t *ranks = ct_alloc((count + 1) * sizeof(*ranks)), rank = 0;
    for (size_t i = 0; i < count; i++) order[i] = (scored){model->pieces[i]->score, (int32_t)i};
    qsort(order, count, sizeof(*order), compare_scores);
    for (size_t i = 0; i < count; i++) {
        if (i && order[i].score < order[i - 1].score) rank++;
        ranks[order[i].id] = rank;
    }
    ct__bpe_add_all_splits(&pipeline->bpe, ranks);
    free(order);
    free(ranks);
}

/* Found in the normalized text, before anything merges. */
static void add_user_defined(ct__pipeline *pipeline, const CtSp__Model *model)
{
    for (size_t i = 0; i < model->n_pieces; i++) {
        ct__bytes piece = pipeline->spellings.tokens[i];
        if (model->pieces[i]->type == CT_SP__PIECE__TYPE__USER_DEFINED && piece.length)
            ct__added_put(&pipeline->normalized_added, piece.data, piece.length, (ct__added_token){.id = (int32_t)i});
    }
}

/* Unigram finds user-defined pieces on its way: their score is 0, and so better than any other. They do not count for
 * the score of what is unknown. */
static void add_scores(ct__pipeline *pipeline, const CtSp__Model *model)
{
    ct__unigram *unigram = &pipeline->unigram;
    pipeline->model = CT__MODEL_UNIGRAM;
    unigram->single_precision = true;
    for (size_t i = 0; i < model->n_pieces; i++) {
        const CtSp__Piece *piece = model->pieces[i];
        ct__bytes text = pipeline->spellings.tokens[i];
        if (piece->type == CT_SP__PIECE__TYPE__NORMAL || piece->type == CT_SP__PIECE__TYPE__USER_DEFINED)
            ct__unigram_put(unigram, (int32_t)i, text.data, text.length, (double)piece->score);
    }
}

static ct_status *read_model(ct__pipeline *pipeline, const CtSp__Model *model)
{
    const CtSp__TrainerSpec default_trainer = CT_SP__TRAINER_SPEC__INIT;
    const CtSp__NormalizerSpec default_normalizer = CT_SP__NORMALIZER_SPEC__INIT;
    const CtSp__TrainerSpec *trainer = model->trainer_spec ? model->trainer_spec : &default_trainer;
    const CtSp__NormalizerSpec *normalizer = model->normalizer_spec ? model->normalizer_spec : &default_normalizer;
    bool is_bpe = trainer->model_type == CT_SP__TRAINER_SPEC__MODEL_TYPE__BPE;
    if (!is_bpe && trainer->model_type != CT_SP__TRAINER_SPEC__MODEL_TYPE__UNIGRAM)
        return ct_error(CT_CODE_UNIMPLEMENTED, "models of type %s are not supported; BPE and UNIGRAM are",
                        trainer->model_type == CT_SP__TRAINER_SPEC__MODEL_TYPE__WORD ? "WORD" : "CHAR");
    if (!model->n_pieces) return ct_error(CT_CODE_INVALID_ARGUMENT, "the model has no pieces");
    for (size_t i = 0; i < model->n_pieces; i++) CT_TRY(read_piece(pipeline, model->pieces[i], (int32_t)i));
    ct__normal_step step = {.kind = CT__NORMAL_SENTENCEPIECE,
                            .add_prefix = normalizer->add_dummy_prefix,
                            .remove_extra_spaces = normalizer->remove_extra_whitespaces,
                            .escape_spaces = normalizer->escape_whitespaces,
                            .prefix_is_suffix = trainer->treat_whitespace_as_suffix,
                            .kept = &pipeline->kept};
    if (normalizer->precompiled_charsmap.len)
        CT_TRY(ct__charsmap_new((const char *)normalizer->precompiled_charsmap.data,
                                normalizer->precompiled_charsmap.len, &step.charsmap));
    ct__normalizer_add(&pipeline->normalizer, step);
    pipeline->bpe.byte_fallback = pipeline->unigram.byte_fallback = trainer->byte_fallback;
    pipeline->bpe.fuse_unknown = pipeline->unigram.fuse_unknown = true;
    pipeline->decoder.byte_fallback = true;
    pipeline->decoder.space = ct_strdup(CT__SPACE_SYMBOL);
    if (normalizer->add_dummy_prefix) pipeline->decoder.strip = CT__STRIP_ONE;
    if (is_bpe) {
        add_merges(pipeline, model);
        add_user_defined(pipeline, model);
    } else {
        add_scores(pipeline, model);
    }
    int32_t size = (int32_t)model->n_pieces;
    pipeline->interface.bos = trainer->bos_id < size ? trainer->bos_id : -1;
    pipeline->interface.eos = trainer->eos_id < size ? trainer->eos_id : -1;
    return NULL;
}

ct_status *ct__read_sentencepiece(const char *bytes, size_t length, const char *path, ct_tokenizer **out_tokenizer)
{
    *out_tokenizer = NULL;
    CtSp__Model *model = ct_sp__model__unpack(NULL, length, (const uint8_t *)bytes);
    if (!model)
        return ct_error(CT_CODE_INVALID_ARGUMENT,
                        "%s is neither JSON, nor a rank file, nor a SentencePiece model (or a damaged one)", path);
    ct__pipeline *pipeline = ct__pipeline_new(path);
    ct_status *status = read_model(pipeline, model);
    ct_sp__model__free_unpacked(model, NULL);
    if (!status) status = ct__read_added_decoder(path, pipeline);
    if (!status) status = ct__pipeline_finish(pipeline, out_tokenizer);
    if (status) ct__pipeline_free(pipeline);
    return ct_status_note(status, "reading %s", path);
}
