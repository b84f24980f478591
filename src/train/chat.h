/* The chat template of a recipe's tokenizer, in the form that datasets of conversations take. */
#ifndef CT_TRAIN_CHAT_H
#define CT_TRAIN_CHAT_H

#include "data/dataset.h"
#include "tokenizer/chat_template.h"
#include "train/recipe.h"

typedef struct ct_recipe_chat {
    ct_chat_renderer renderer;
    ct_chat_template *chat_template; /* NULL: none was opened */
    const ct_tokenizer *tokenizer;   /* borrowed */
} ct_recipe_chat;

/* Opens the template beside the tokenizer that ct_recipe_tokenizer opens. Datasets borrow &chat->renderer, so chat must
 * stay where it is and outlive them. A template that asks for the date is told the same one on any day, so that a run
 * that resumes later goes on with the same tokens.
 * Errors: FAILED_PRECONDITION, naming the recipe's line and what to do, for a tokenizer without a template; those of
 * ct_chat_template_open. */
CT_MUST_USE ct_status *ct_recipe_chat_open(ct_recipe_chat *chat, const ct_recipe *recipe,
                                           const ct_tokenizer *tokenizer);
void ct_recipe_chat_close(ct_recipe_chat *chat); /* all zero is allowed */

#endif
