/* Any bytes either are refused with a line, or are a template that renders a conversation or says why not; what failed
 * leaves nothing behind. */
#include <stdlib.h>
#include <string.h>

#include "tokenizer/chat_template.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char conversation[] = "[{\"role\": \"user\", \"content\": \" Hi \\u00e9 \"}, {\"role\": \"assistant\", "
                                   "\"content\": null, \"tool_calls\": "
                                   "[{\"function\": {\"name\": \"f\", \"arguments\": {\"a\": [1, 2.5, true]}}}]}, "
                                   "{\"role\": \"tool\", \"content\": \"x\"}]";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    ct_chat_template *chat_template;
    ct_status *status = ct_chat_template_parse((const char *)bytes, size, "fuzz", &chat_template);
    if (status) {
        if (strncmp(ct_status_message(status), "fuzz:", 5) != 0) abort();
        ct_status_free(status);
        return 0;
    }
    ct_json *json;
    status = ct_json_parse(conversation, strlen(conversation), "messages", &json);
    if (status) abort();
    ct_token_range *generated;
    size_t num_generated;
    ct_chat_opts opts = {.add_generation_prompt = true,
                         .tools = ct_json_root(json),
                         .now_seconds = 1,
                         .out_generated = &generated,
                         .out_num_generated = &num_generated};
    ct_str text;
    ct_str_init(&text);
    ct_str_append(&text, "before");
    status = ct_chat_template_render(chat_template, ct_json_root(json), &opts, &text);
    if (status && strcmp(text.data, "before") != 0) abort();
    for (size_t i = 0; !status && i < num_generated; i++)
        if (generated[i].begin > generated[i].end) abort();
    if (!status) free(generated);
    ct_status_free(status);
    ct_str_deinit(&text);
    ct_json_free(json);
    ct_chat_template_free(chat_template);
    return 0;
}
