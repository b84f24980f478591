/* Bytes up to the first NUL are a file, each NUL-ended piece behind it an argument. What loads must print, and what is
 * printed must load.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "train/recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* TOML is UTF-8, command lines need not be; printing is only promised for text. */
static bool is_ascii(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text > 0x7f) return false;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ct_log_set_level(CT_LOG_ERROR);
    char *text = ct_alloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    const char *arguments[16];
    ct_recipe_load_opts opts = {.overrides = arguments};
    for (size_t at = strlen(text) + 1; at < size && opts.num_overrides < CT_COUNT(arguments);
         at += strlen(text + at) + 1)
        if (is_ascii(text + at)) arguments[opts.num_overrides++] = text + at;
    ct_recipe *recipe, *again;
    ct_status *status = ct_recipe_parse("input", text, strlen(text), &opts, &recipe);
    if (!status) {
        ct_str printed;
        ct_str_init(&printed);
        ct_recipe_print(recipe, &printed);
        status = ct_recipe_parse("printed", printed.data, printed.length, NULL, &again);
        if (status) CT_BUG("%s\n%s", ct_status_message(status), printed.data);
        ct_recipe_free(again);
        ct_str_deinit(&printed);
    }
    ct_recipe_free(recipe);
    ct_status_free(status);
    ct_log_set_level(CT_LOG_INFO);
    free(text);
    return 0;
}
