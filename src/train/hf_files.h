/* The files that make weights a Hugging Face folder: config.json, generation_config.json and those of the tokenizer.
 * They come from the folders that model and tokenizer were read from, byte for byte. Of a model that no folder gave,
 * config.json is written from its sizes, and generation_config.json from its tokenizer: the ids that begin and end a
 * document. Checkpoints carry them as assets, so that any step can become a folder.
 */
#ifndef CT_TRAIN_HF_FILES_H
#define CT_TRAIN_HF_FILES_H

#include "checkpoint/checkpoint.h"
#include "models/model.h"
#include "tokenizer/tokenizer.h"

typedef struct ct_hf_files {
    struct ct_arena *arena;
    ct_checkpoint_asset *assets; /* the first is config.json; with room for one more when opened from a folder */
    size_t num_assets;
} ct_hf_files;

/* Reads what there is of them in folder; when it is no folder, the model's own are written. tokenizer_path: the folder,
 * or a file in it, that the tokenizer's files are taken from; NULL: from folder too. tokenizer: of the ids, which
 * "bytes" has none of here, as no file is written of it; NULL: none are known. Errors: those of reading. */
CT_MUST_USE ct_status *ct_hf_files_open(const ct_model *model, const char *folder, const char *tokenizer_path,
                                        const ct_tokenizer *tokenizer, ct_hf_files *out_files);
/* Those that a checkpoint carries, but for what is in folders of it: adapters. Errors: NOT_FOUND when config.json is
 * not among them. */
CT_MUST_USE ct_status *ct_hf_files_of_step(const ct_checkpoint *checkpoint, ct_hf_files *out_files);
/* One more, a text, to files of a folder. */
void ct_hf_files_add(ct_hf_files *files, const char *name, const char *text);
void ct_hf_files_close(ct_hf_files *files); /* all zero is allowed */

/* They with config.json saying that weights are of dtype; as they are when it says so already. The array and what it
 * points to are valid until _close. */
const ct_checkpoint_asset *ct_hf_files_for(ct_hf_files *files, ct_dtype dtype, size_t *out_num_assets);

#endif
