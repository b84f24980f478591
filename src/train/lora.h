/* Adapters as files and in a step's info: PEFT's layout, and what they were trained on.
 *
 *   step-N/adapter/adapter_model.safetensors   base_model.model.{module}.lora_A.weight [rank in],
 *                                              base_model.model.{module}.lora_B.weight [out rank]
 *   step-N/adapter/adapter_config.json         PEFT's LoraConfig
 *
 * A step of a run with adapters holds them and their moments, and not the weights that they adapt. Its info says which
 * those are, so that no run goes on, and no conversion merges, on top of others:
 *
 *   "lora": {"rank": 8, "alpha": 16, "target_modules": ["q_proj", ...],
 *            "base": {"path": "Qwen3-0.6B", "is_hf": true, "fingerprint": "0f3c..."} or {"seed": 42}}
 *
 * The fingerprint of a Hugging Face folder is of names, types, shapes and some of the bytes of its tensors, of a saved
 * step of its manifest, which has the hashes of all.
 */
#ifndef CT_TRAIN_LORA_H
#define CT_TRAIN_LORA_H

#include "formats/json.h"
#include "models/lora.h"
#include "train/recipe.h"

#define CT_ADAPTER_FOLDER      "adapter"
#define CT_ADAPTER_MODEL_NAME  "adapter_model.safetensors"
#define CT_ADAPTER_CONFIG_NAME "adapter_config.json"
#define CT_ADAPTER_FILE        CT_ADAPTER_FOLDER "/" CT_ADAPTER_MODEL_NAME
#define CT_ADAPTER_CONFIG      CT_ADAPTER_FOLDER "/" CT_ADAPTER_CONFIG_NAME

/* The weights that adapters are trained on. */
typedef struct ct_lora_base {
    const char *path; /* NULL: made from the seed */
    bool is_hf;       /* a Hugging Face folder; else a saved step */
    int64_t seed;
    char fingerprint[17]; /* hex digits; empty for a seed */
} ct_lora_base;

/* What the recipe names, with its fingerprint. Errors: those of reading. */
CT_MUST_USE ct_status *ct_lora_base_of(const ct_recipe *recipe, ct_lora_base *out_base);
/* The fingerprint of a folder or a step as it is now. */
CT_MUST_USE ct_status *ct_lora_fingerprint(const char *path, bool is_hf, char out_digits[17]);

/* Appends "lora" to a step's info. */
void ct_lora_info_write(const ct_model *model, const ct_lora_base *base, ct_json_writer *writer);
/* A step's info, "lora" of which is absent from a step without adapters. */
bool ct_lora_info_has(ct_json_value info);
/* The base that a step's info names; strings are the JSON's. */
CT_MUST_USE ct_status *ct_lora_info_base(ct_json_value info, ct_lora_base *out_base);
/* The adapters that a step's info describes; strings are the arena's. */
CT_MUST_USE ct_status *ct_lora_info_read(ct_json_value info, ct_arena *arena, ct_lora *out_lora);

/* Can a run go on from the step: is it of adapters if and only if the model has some, of the same kind, on the same
 * base? Errors: FAILED_PRECONDITION naming both. */
CT_MUST_USE ct_status *ct_lora_info_check(ct_json_value info, const ct_model *model, const ct_lora_base *base);

/* The text of the adapter_config.json; heap. base: its path or the model's name. */
char *ct_lora_config_text(const ct_model *model, const char *base);
/* Is FOLDER/adapter_config.json of the model's adapters? Errors: those of reading; FAILED_PRECONDITION naming both
 * values; UNIMPLEMENTED for what is not computed here (use_dora, biases, ranks of their own). */
CT_MUST_USE ct_status *ct_lora_config_check(const char *folder, const ct_model *model);

#endif
