/* render_templates TEMPLATE CASES: renders every case of a JSON array of {"messages", "tools", "variables",
 * "add_generation_prompt"} and writes a JSON array of {"text", "generated"} or {"error"}. For the tests, which hold it
 * against Jinja. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "tokenizer/chat_template.h"

static ct_status *render(const ct_chat_template *chat_template, ct_json_value value, ct_json_writer *writer)
{
    ct_token_range *generated;
    size_t num_generated;
    ct_chat_opts opts = {.tools = ct_json_get(value, "tools"),
                         .variables = ct_json_get(value, "variables"),
                         .now_seconds = 1700000000,
                         .out_generated = &generated,
                         .out_num_generated = &num_generated};
    CT_TRY(ct_json_get_bool(value, "add_generation_prompt", &opts.add_generation_prompt));
    ct_str text;
    ct_str_init(&text);
    ct_status *status = ct_chat_template_render(chat_template, ct_json_get(value, "messages"), &opts, &text);
    ct_json_begin_object(writer, NULL);
    if (status) {
        ct_json_put_string(writer, "error", ct_status_message(status));
        ct_status_free(status);
    } else {
        ct_json_put_string(writer, "text", text.data);
        ct_json_begin_array(writer, "generated");
        for (size_t i = 0; i < num_generated; i++) {
            ct_json_put_int(writer, NULL, (int64_t)generated[i].begin);
            ct_json_put_int(writer, NULL, (int64_t)generated[i].end);
        }
        ct_json_end(writer);
        free(generated);
    }
    ct_json_end(writer);
    ct_str_deinit(&text);
    return NULL;
}

static ct_status *run(const char *template_path, const char *cases_path)
{
    char *source = NULL;
    size_t length;
    ct_json *cases = NULL;
    ct_chat_template *chat_template = NULL;
    ct_json_writer *writer = ct_json_writer_new();
    ct_status *status = NULL;
    CT_TRY_OUT(ct_file_read(template_path, &source, &length));
    CT_TRY_OUT(ct_json_read(cases_path, &cases));
    CT_TRY_OUT(ct_chat_template_parse(source, length, "template", &chat_template));
    ct_json_begin_array(writer, NULL);
    ct_json_iter iter = ct_json_iterate(ct_json_root(cases));
    while (ct_json_next(&iter)) CT_TRY_OUT(render(chat_template, iter.value, writer));
    ct_json_end(writer);
    char *text = ct_json_writer_text(writer, false);
    fputs(text, stdout);
    free(text);
out:
    free(source);
    ct_json_free(cases);
    ct_chat_template_free(chat_template);
    ct_json_writer_free(writer);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: render_templates TEMPLATE CASES\n");
        return 2;
    }
    ct_status *status = run(argv[1], argv[2]);
    if (status) fprintf(stderr, "%s\n", ct_status_message(status));
    int code = status ? 1 : 0;
    ct_status_free(status);
    return code;
}
