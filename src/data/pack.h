/* From documents to samples. Only for files in this folder.
 *
 * A document of n tokens gives n - 1 pairs of a token and the label that follows it. With document_mask, and always in
 * first_fit and none, samples are made of such pairs; each document in a sample has its own segment id, and positions
 * count from 0 in each with document_mask:
 *
 *   concat_then_split   |aaaaaab|bbbcccc|cccccdd| ...    cut anywhere: the rest of a document begins at position 0
 *   first_fit           |aaaaa..|bbbcccc|  dots: label -100
 *
 * In concat_then_split without document_mask documents run together: the label of the last token of one is the first of
 * the next, so each token is a label once.
 */
#ifndef CT_DATA_PACK_H
#define CT_DATA_PACK_H

#include "data/document.h"
#include "data/source.h"

typedef struct ct__packer ct__packer;

/* Gives the next document, the packer's from then on; out_ended when there is none. */
typedef ct_status *(*ct__next_document)(void *context, ct__document *out_document, bool *out_ended);

ct__packer *ct__packer_new(const ct_dataset_opts *opts, ct_data_packing packing, ct__next_document next, void *context);
void ct__packer_free(ct__packer *packer); /* NULL is allowed */

/* The next sample with at least one label that counts. At the end of the documents the last ones are filled up with
 * ignored labels. */
CT_MUST_USE ct_status *ct__packer_next(ct__packer *packer, ct__row *row, bool *out_ended);

/* The documents in hand, in the order in which _put takes them back. */
void ct__packer_save(const ct__packer *packer, ct__source_state *state);
/* To where it stood in a new state, but for its documents. */
void ct__packer_restore(ct__packer *packer, const ct__source_state *state);
/* Takes a document back to where held says. Errors: OUT_OF_RANGE when it does not belong there. */
CT_MUST_USE ct_status *ct__packer_put(ct__packer *packer, const ct__held *held, ct__document *document);

#endif
