/* Finding out what a path holds, and what tokenizer_config.json beside it adds. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "tokenizer/readers.h"
#include "tokenizer/tokenizer.h"

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), size = strlen(end);
    return length >= size && !strcmp(text + length - size, end);
}

/* A rank file is text, lines of base64 and a number; SentencePiece's is a protobuf message. */
static bool looks_like_ranks(const char *data, size_t length)
{
    const char *end = memchr(data, '\n', CT_MIN(length, (size_t)1024));
    const char *space = end ? memchr(data, ' ', (size_t)(end - data)) : NULL;
    return space && space > data && space[1] >= '0' && space[1] <= '9' &&
           strspn(data, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == (size_t)(space - data);
}

static ct_status *open_json(const char *text, size_t length, const char *path, ct_tokenizer **out_tokenizer)
{
    ct_json *json;
    CT_TRY(ct_json_parse(text, length, path, &json));
    ct_json_value root = ct_json_root(json);
    if (!ct_json_is_absent(ct_json_get(root, "config")) && ct_json_is_absent(ct_json_get(root, "model"))) {
        ct_status *status = ct__read_tekken(json, path, out_tokenizer);
        ct_json_free(json);
        return status;
    }
    ct_json_free(json);
    return ct__read_tokenizer_json(text, length, path, out_tokenizer);
}

static ct_status *open_file(const char *path, ct_tokenizer **out_tokenizer)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (!strcmp(name, "vocab.json") || !strcmp(name, "merges.txt")) {
        char *folder = ct_path_parent(path), *vocab = ct_path_join(folder, "vocab.json");
        char *merges = ct_path_join(folder, "merges.txt");
        ct_status *status = ct__read_vocab_merges(vocab, merges, out_tokenizer);
        free(folder);
        free(vocab);
        free(merges);
        return status;
    }
    char *text;
    size_t length;
    CT_TRY(ct_file_read(path, &text, &length));
    ct_status *status;
    if (ends_with(path, ".json"))
        status = open_json(text, length, path, out_tokenizer);
    else if (looks_like_ranks(text, length))
        status = ct__read_tiktoken(text, length, path, out_tokenizer);
    else
        status = ct__read_sentencepiece(text, length, path, out_tokenizer);
    free(text);
    return status;
}

/* The file of a folder that holds its tokenizer; heap, NULL when there is none. */
static ct_status *find_file(const char *folder, char **out_path)
{
    *out_path = NULL;
    static const char *const names[] = {"tokenizer.json", "vocab.json", "tokenizer.model", "*.tiktoken", "tekken.json"};
    char **files;
    size_t num_files;
    CT_TRY(ct_dir_list(folder, &files, &num_files));
    for (size_t i = 0; i < CT_COUNT(names) && !*out_path; i++)
        for (size_t j = 0; j < num_files && !*out_path; j++)
            if (names[i][0] == '*' ? ends_with(files[j], names[i] + 1) : !strcmp(files[j], names[i]))
                *out_path = ct_path_join(folder, files[j]);
    ct_names_free(files, num_files);
    if (*out_path) return NULL;
    return ct_error(CT_CODE_NOT_FOUND,
                    "%s has no tokenizer: none of tokenizer.json, vocab.json with merges.txt, tokenizer.model, "
                    "*.tiktoken, tekken.json",
                    folder);
}

bool ct_tokenizer_is_in(const char *folder)
{
    char *path;
    ct_status_free(find_file(folder, &path));
    bool is_there = path != NULL;
    free(path);
    return is_there;
}

/* "bos_token": "<s>" or {"content": "<s>", ...}; null says that there is none. */
static ct_status *read_token(ct_json_value config, const char *key, const ct_tokenizer *tokenizer, int32_t *id,
                             bool *found)
{
    ct_json_value value = ct_json_get(config, key);
    *found = !ct_json_is_absent(value);
    if (!*found) return NULL;
    *id = -1;
    if (ct_json_is_null(value)) return NULL;
    const char *text;
    if (ct_json_type_of(value) == CT_JSON_OBJECT)
        CT_TRY(ct_json_need_string(value, "content", &text));
    else
        CT_TRY(ct_json_as_string(value, &text));
    *id = ct_tokenizer_id(tokenizer, text, strlen(text));
    if (*id >= 0) return NULL;
    char *where = ct_json_where(value);
    ct_status *status = ct_error(CT_CODE_INVALID_ARGUMENT, "%s is \"%s\", which is no token of %s", where, text,
                                 ct_tokenizer_name(tokenizer));
    free(where);
    return status;
}

/* Of the two files that may name the tokens the first that does counts. add_bos_token and add_eos_token count where the
 * tokenizer's own file does not say what belongs around a text. */
static ct_status *read_config(const char *folder, ct_tokenizer *tokenizer)
{
    static const char *const names[] = {"tokenizer_config.json", "special_tokens_map.json"};
    bool has_bos = false, has_eos = false, add_bos = false, add_eos = false;
    for (size_t i = 0; i < CT_COUNT(names); i++) {
        char *path = ct_path_join(folder, names[i]);
        ct_json *json = NULL;
        ct_status *status = ct_path_exists(path) ? ct_json_read(path, &json) : NULL;
        free(path);
        CT_TRY(status);
        if (!json) continue;
        if (!has_bos) status = read_token(ct_json_root(json), "bos_token", tokenizer, &tokenizer->bos, &has_bos);
        if (!has_eos && !status)
            status = read_token(ct_json_root(json), "eos_token", tokenizer, &tokenizer->eos, &has_eos);
        if (!status) status = ct_json_get_bool(ct_json_root(json), "add_bos_token", &add_bos);
        if (!status) status = ct_json_get_bool(ct_json_root(json), "add_eos_token", &add_eos);
        ct_json_free(json);
        CT_TRY(status);
    }
    if (tokenizer->set_around) tokenizer->set_around(tokenizer, add_bos, add_eos);
    return NULL;
}

ct_status *ct_tokenizer_open(const char *path, ct_tokenizer **out_tokenizer)
{
    *out_tokenizer = NULL;
    if (!strcmp(path, "bytes")) {
        *out_tokenizer = ct_tokenizer_bytes_new();
        return NULL;
    }
    bool is_folder = ct_path_is_dir(path);
    char *file = NULL, *folder = is_folder ? ct_strdup(path) : ct_path_parent(path);
    ct_status *status = is_folder ? find_file(path, &file) : NULL;
    if (!status) status = open_file(file ? file : path, out_tokenizer);
    if (!status) status = read_config(folder, *out_tokenizer);
    if (status) {
        ct_tokenizer_free(*out_tokenizer);
        *out_tokenizer = NULL;
    }
    free(file);
    free(folder);
    return status;
}
