/* "text": the documents that a path names, tokenised into one stream in memory. */
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/source.h"

typedef struct path_list {
    char **paths;
    size_t count;
} path_list;

static void add_path(path_list *list, const char *path)
{
    list->paths = ct_realloc(list->paths, (list->count + 1) * sizeof(*list->paths));
    list->paths[list->count++] = ct_strdup(path);
}

static ct_status *add_folder(path_list *list, const char *folder)
{
    char **names;
    size_t num_names;
    CT_TRY(ct_dir_list(folder, &names, &num_names));
    ct_status *status = NULL;
    for (size_t i = 0; i < num_names && !status; i++) {
        if (names[i][0] == '.') continue;
        char *path = ct_path_join(folder, names[i]);
        if (ct_path_is_dir(path))
            status = add_folder(list, path);
        else
            add_path(list, path);
        free(path);
    }
    ct_names_free(names, num_names);
    return status;
}

static ct_status *add_matches(path_list *list, const char *pattern)
{
    glob_t matches;
    int result = glob(pattern, 0, NULL, &matches);
    if (result && result != GLOB_NOMATCH)
        return ct_error(CT_CODE_INTERNAL, "cannot look for files that match %s", pattern);
    if (!result)
        for (size_t i = 0; i < matches.gl_pathc; i++)
            if (!ct_path_is_dir(matches.gl_pathv[i])) add_path(list, matches.gl_pathv[i]);
    globfree(&matches);
    return NULL;
}

static ct_status *find_documents(const char *path, path_list *list)
{
    if (ct_path_is_dir(path))
        CT_TRY(add_folder(list, path));
    else if (ct_path_exists(path) || !strpbrk(path, "*?["))
        add_path(list, path); /* a missing file is told when it is opened */
    else
        CT_TRY(add_matches(list, path));
    if (list->count) return NULL;
    return ct_error(CT_CODE_NOT_FOUND, "training.dataset_path = \"%s\" must name text files, but %s", path,
                    ct_path_is_dir(path) ? "the folder has none" : "no file matches");
}

/* Appends one document to the stream. */
static ct_status *add_document(ct_dataset *dataset, const ct_tokenizer *tokenizer, const char *path, int64_t *capacity)
{
    char *text;
    size_t length, num_ids = 0;
    CT_TRY(ct_file_read(path, &text, &length));
    int32_t *ids = NULL;
    ct_status *status = NULL;
    if (length)
        status = ct_tokenizer_encode(tokenizer, text, length,
                                     &(ct_tokenizer_encode_opts){.add_bos = true, .add_eos = true}, &ids, &num_ids);
    free(text);
    CT_TRY_NOTE(status, "reading %s", path);
    for (size_t i = 0; i < num_ids && !status; i++)
        if (ids[i] < 0 || ids[i] >= dataset->opts.vocab_size)
            status =
                ct_error(CT_CODE_OUT_OF_RANGE,
                         "%s: token %zu is id %d, but the model's vocabulary has only %lld ids; tokenizer %s needs %d",
                         path, i, ids[i], (long long)dataset->opts.vocab_size, ct_tokenizer_name(tokenizer),
                         ct_tokenizer_vocab_size(tokenizer));
    if (!status && num_ids) {
        int64_t total = dataset->num_tokens + (int64_t)num_ids;
        if (total > *capacity) {
            *capacity = CT_MAX(total, *capacity * 2);
            dataset->stream = ct_realloc(dataset->stream, (size_t)*capacity * sizeof(int32_t));
        }
        memcpy(dataset->stream + dataset->num_tokens, ids, num_ids * sizeof(int32_t));
        dataset->num_tokens = total;
    }
    free(ids);
    return status;
}

ct_status *ct__text_open(ct_dataset *dataset, const ct_tokenizer *tokenizer)
{
    CT_ASSERT(tokenizer);
    path_list list = {0};
    ct_status *status = NULL;
    int64_t capacity = 0, seq_len = dataset->opts.seq_len;
    CT_TRY_OUT(find_documents(dataset->path, &list));
    for (size_t i = 0; i < list.count; i++) CT_TRY_OUT(add_document(dataset, tokenizer, list.paths[i], &capacity));
    if (dataset->num_tokens < seq_len + 1) {
        status =
            ct_error(CT_CODE_INVALID_ARGUMENT,
                     "the text of %s must have at least training.seq_len + 1 = %lld tokens, but has %lld in %zu file%s",
                     dataset->path, (long long)seq_len + 1, (long long)dataset->num_tokens, list.count,
                     list.count == 1 ? "" : "s");
        goto out;
    }
    dataset->num_samples = (dataset->num_tokens - 1) / seq_len;
out:
    ct_names_free(list.paths, list.count);
    return status;
}
