/* Learning a byte-level BPE from text, as Hugging Face's BpeTrainer does: the pair of neighbours that is most frequent
 * within pieces of text becomes a token, again and again; of equally frequent pairs that of the smaller ids.
 *
 *   ids: special tokens | the 256 bytes, in the order of their letters | merges
 */
#ifndef CT_TOKENIZER_TRAIN_H
#define CT_TOKENIZER_TRAIN_H

#include "base/status.h"

typedef struct ct_tokenizer_trainer ct_tokenizer_trainer;

ct_tokenizer_trainer *ct_tokenizer_trainer_new(void);
void ct_tokenizer_trainer_free(ct_tokenizer_trainer *trainer); /* NULL is allowed */

/* Counts the pieces of a text, cut as Llama 3 does; any number of texts may follow each other. */
CT_MUST_USE ct_status *ct_tokenizer_trainer_add(ct_tokenizer_trainer *trainer, const char *text, size_t length);

/* Learns merges until there are vocab_size tokens, or no pair of neighbours is left; out_vocab_size says how many there
 * are. Writes tokenizer.json and tokenizer_config.json to folder, with bos "<|begin_of_text|>" (id 0) in front of every
 * text and eos "<|end_of_text|>" (id 1).
 * Errors: INVALID_ARGUMENT for a vocab_size below 258 and when no text was added. */
CT_MUST_USE ct_status *ct_tokenizer_trainer_write(ct_tokenizer_trainer *trainer, int64_t vocab_size, const char *folder,
                                                  int64_t *out_vocab_size);

#endif
