/* What the readers of tokenizer files say about JSON. Only for files in this folder. */
#ifndef CT_TOKENIZER_JSON_HELP_H
#define CT_TOKENIZER_JSON_HELP_H

#include "formats/json.h"

/* UNIMPLEMENTED "tokenizer.json: normalizer: WHAT is not supported (type "Nmt")". */
CT_MUST_USE ct_status *ct__json_unsupported(ct_json_value value, const char *what);

#endif
