/* Chat templates for data. */
#include "train/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "train/setup.h"

enum { NOW_SECONDS = 1721952000 /* 26 Jul 2024: the date that Llama 3's templates give where there is no clock */ };

static ct_status *render(void *context, ct_json_value messages, ct_str *out_text)
{
    const ct_recipe_chat *chat = context;
    ct_chat_opts opts = {.tokenizer = chat->tokenizer, .now_seconds = NOW_SECONDS};
    return ct_chat_template_render(chat->chat_template, messages, &opts, out_text);
}

ct_status *ct_recipe_chat_open(ct_recipe_chat *chat, const ct_recipe *recipe, const ct_tokenizer *tokenizer)
{
    *chat = (ct_recipe_chat){.tokenizer = tokenizer};
    chat->renderer = (ct_chat_renderer){render, chat};
    const char *key, *path = ct_recipe_tokenizer_path(recipe, &key);
    char *folder = ct_path_is_dir(path) ? ct_strdup(path) : ct_path_parent(path);
    ct_status *status = NULL;
    if (!ct_path_exists(path)) /* the tokenizer of bytes */
        status = ct_error(CT_CODE_NOT_FOUND, "the tokenizer \"%s\" has no chat template", path);
    else
        status = ct_chat_template_open(folder, &chat->chat_template);
    free(folder);
    if (ct_status_code(status) != CT_CODE_NOT_FOUND) return ct_status_note(status, "the chat template of %s", key);
    ct_status *error = ct_error(
        CT_CODE_FAILED_PRECONDITION,
        "dataloader.messages_column (%s) needs a chat template, but %s; put the model's chat_template.jinja there, set "
        "model.hf_assets_path to the folder of a tokenizer that has one, or train on prompt_column and "
        "completion_column",
        ct_recipe_where(recipe, "dataloader.messages_column"), ct_status_message(status));
    ct_status_free(status);
    return error;
}

void ct_recipe_chat_close(ct_recipe_chat *chat)
{
    ct_chat_template_free(chat->chat_template);
    *chat = (ct_recipe_chat){0};
}
