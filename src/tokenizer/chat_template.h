/* Chat templates: the Jinja that Hugging Face folders carry, which turns a conversation into the text that a model was
 * trained on. Rendered as transformers does (trim_blocks and lstrip_blocks on, loop controls, `generation` blocks).
 *
 * The subset: all expressions but calls with * and **; set, if, for, macro, break, continue, generation, raw and
 * comments; the filters, tests and methods of jinja_filters.c, jinja_tests.c and jinja_methods.c. What is beyond it is
 * an error that names the construct and its line, when the template is parsed or, for names, when it is reached.
 *
 * A template is immutable, so threads may share one.
 */
#ifndef CT_TOKENIZER_CHAT_TEMPLATE_H
#define CT_TOKENIZER_CHAT_TEMPLATE_H

#include "formats/json.h"
#include "tokenizer/tokenizer.h"

typedef struct ct_chat_template ct_chat_template;

/* name is for messages. Errors: INVALID_ARGUMENT, UNIMPLEMENTED "name:line: ...". */
CT_MUST_USE ct_status *ct_chat_template_parse(const char *source, size_t length, const char *name,
                                              ct_chat_template **out_template);

/* A folder's chat_template.jinja, or the one in its tokenizer_config.json (of several the one named "default").
 * Errors: NOT_FOUND when the folder has none. */
CT_MUST_USE ct_status *ct_chat_template_open(const char *folder, ct_chat_template **out_template);
void ct_chat_template_free(ct_chat_template *chat_template); /* NULL is allowed */

typedef struct ct_chat_opts {
    bool add_generation_prompt;    /* end with what begins the assistant's answer */
    ct_json_value tools;           /* an array; absent: none */
    ct_json_value variables;       /* an object of further variables (enable_thinking, documents, ...); absent: none */
    const ct_tokenizer *tokenizer; /* gives bos_token and eos_token; NULL: they are undefined */
    int64_t now_seconds;           /* what strftime_now() says, in UTC since 1970; 0: the clock */
    /* If not NULL: the parts of the text that the assistant wrote, as the template's `generation` blocks mark them;
     * heap, the caller's to free(), none for a template without such blocks. */
    ct_token_range **out_generated;
    size_t *out_num_generated;
} ct_chat_opts;

/* Appends the text of messages, an array of objects with "role" and "content" (and what else the template knows).
 * Errors: what the template itself raises, by its own words; UNIMPLEMENTED and INVALID_ARGUMENT with the line. */
CT_MUST_USE ct_status *ct_chat_template_render(const ct_chat_template *chat_template, ct_json_value messages,
                                               const ct_chat_opts *opts, ct_str *str);

typedef struct ct_chat_message {
    const char *role, *content;
} ct_chat_message;
CT_MUST_USE ct_status *ct_chat_template_render_messages(const ct_chat_template *chat_template,
                                                        const ct_chat_message *messages, size_t num_messages,
                                                        const ct_chat_opts *opts, ct_str *str);

#endif
