/* Shardings from the table: words of mesh axes become mesh axes, what does not divide is padded or left whole. */
#include "spmd/parallel.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

enum { REPLICATE_BELOW = 65536 };

void ct_parallel_attach(ct_graph *graph, const ct_parallel *parallel)
{
    if (!parallel || parallel->mesh.num_devices == 1) return;
    char *mesh = ct_mesh_text(&parallel->mesh);
    ct_graph_set_mesh(graph, mesh);
    free(mesh);
    graph->parallel = parallel;
}

const ct_parallel *ct_parallel_of(const ct_graph *graph)
{
    return graph->parallel;
}

/* ---- one dim ---- */

static const ct_sharding_axis *find_row(const ct_parallel *parallel, const char *axis)
{
    const ct_sharding_table *table = parallel->table;
    for (int i = 0; i < table->num_axes; i++)
        if (!strcmp(table->axes[i].axis, axis)) return &table->axes[i];
    return NULL;
}

/* "cp+tp" (NULL: nothing) -> mesh axes, slowest first. */
static int find_mesh_axes(const ct_mesh *mesh, const char *words, size_t length, int out_axes[CT_MAX_MESH_AXES])
{
    int count = 0;
    for (const char *end = words ? words + length : NULL; words && words < end;) {
        const char *plus = memchr(words, '+', (size_t)(end - words)), *stop = plus ? plus : end;
        int found[CT_MAX_MESH_AXES], num_found = ct_mesh_find(mesh, words, (size_t)(stop - words), found);
        if (num_found < 0) CT_BUG("no mesh axes are called %.*s", (int)(stop - words), words);
        CT_ASSERT(count + num_found <= CT_MAX_MESH_AXES);
        for (int i = 0; i < num_found; i++) out_axes[count++] = found[i];
        words = stop + 1;
    }
    return count;
}

static int64_t product(const ct_mesh *mesh, int count, const int *mesh_axes)
{
    int64_t result = 1;
    for (int i = 0; i < count; i++) result *= mesh->axes[mesh_axes[i]].size;
    return result;
}

static bool may_pad(const ct_parallel *parallel, const ct_sharding_axis *row)
{
    return row && row->may_pad && parallel->partition != CT_PARTITION_SHARDY;
}

/* Splits dim over mesh axes, after those that split it already; false: it does not divide and may not be padded, or
 * one of them is taken. */
static bool split(const ct_parallel *parallel, ct_sharding *sharding, int dim, const ct_axis *axis, int count,
                  const int *mesh_axes, bool pad)
{
    int64_t parts = ct_sharding_parts(&parallel->mesh, sharding, dim) * product(&parallel->mesh, count, mesh_axes);
    if (axis->size % parts && !pad) return false;
    for (int i = 0; i < count; i++)
        if (ct__placement_uses(&sharding->at, mesh_axes[i])) return false;
    for (int i = 0; i < count; i++) sharding->at.mesh_axes[dim][sharding->at.count[dim]++] = mesh_axes[i];
    sharding->padded[dim] = axis->size % parts ? (axis->size / parts + 1) * parts : 0;
    return true;
}

static void split_by_words(const ct_parallel *parallel, ct_sharding *sharding, int dim, const ct_axis *axis,
                           const char *words, size_t length)
{
    int mesh_axes[CT_MAX_MESH_AXES], count = find_mesh_axes(&parallel->mesh, words, length, mesh_axes);
    split(parallel, sharding, dim, axis, count, mesh_axes, may_pad(parallel, find_row(parallel, axis->name)));
}

/* ---- tensors ---- */

static ct_sharding by_column(const ct_parallel *parallel, int rank, const ct_axis *axes, bool is_stored)
{
    ct_sharding sharding = {0};
    for (int i = 0; i < rank; i++) {
        const ct_sharding_axis *row = find_row(parallel, axes[i].name);
        const char *words = !row ? NULL : is_stored ? row->stored : row->activation;
        if (words) split_by_words(parallel, &sharding, i, &axes[i], words, strlen(words));
    }
    return sharding;
}

ct_sharding ct_parallel_activation(const ct_parallel *parallel, int rank, const ct_axis *axes)
{
    return by_column(parallel, rank, axes, false);
}

ct_sharding ct_parallel_used(const ct_parallel *parallel, int rank, const ct_axis *axes)
{
    return by_column(parallel, rank, axes, false);
}

static int find_dim(int rank, const ct_axis *axes, const char *name, size_t length)
{
    for (int i = 0; i < rank; i++)
        if (strlen(axes[i].name) == length && !memcmp(axes[i].name, name, length)) return i;
    return -1;
}

/* The mesh axes that a stored parameter is further split over: fsdp's, and for kv heads that are fewer than tp the
 * part of tp along which they are repeated. */
static int storage_mesh_axes(const ct_parallel *parallel, int rank, const ct_axis *axes, const ct_sharding *sharding,
                             int out_axes[CT_MAX_MESH_AXES])
{
    const ct_mesh *mesh = &parallel->mesh;
    int count = ct_mesh_find(mesh, "fsdp", 4, out_axes);
    bool is_repeated = false;
    for (int i = 0; i < rank; i++) {
        const ct_sharding_axis *row = find_row(parallel, axes[i].name);
        if (row && row->stored && !strcmp(row->stored, "tp_kv")) is_repeated = true;
    }
    for (int i = 0; is_repeated && i < mesh->num_axes; i++)
        if (mesh->axes[i].group == CT_MESH_TP && !ct__placement_uses(&sharding->at, i)) out_axes[count++] = i;
    return count;
}

/* Splits over mesh axes the first of the table's fsdp_axes that divides, or the first that may be padded. */
static void split_storage(const ct_parallel *parallel, int rank, const ct_axis *axes, ct_sharding *sharding)
{
    int64_t elements = 1;
    for (int i = 0; i < rank; i++)
        if (find_row(parallel, axes[i].name)) elements *= axes[i].size;
    if (elements < (parallel->replicate_below ? parallel->replicate_below : REPLICATE_BELOW)) return;
    int mesh_axes[CT_MAX_MESH_AXES], count = storage_mesh_axes(parallel, rank, axes, sharding, mesh_axes);
    for (int pad = 0; pad < 2 && count; pad++)
        for (const char *word = parallel->table->fsdp_axes; *word; word += strspn(word, " ")) {
            size_t length = strcspn(word, " ");
            int dim = find_dim(rank, axes, word, length);
            word += length;
            if (dim < 0) continue;
            bool may = pad && may_pad(parallel, find_row(parallel, axes[dim].name));
            if (split(parallel, sharding, dim, &axes[dim], count, mesh_axes, may)) return;
        }
}

ct_sharding ct_parallel_stored(const ct_parallel *parallel, int rank, const ct_axis *axes)
{
    ct_sharding sharding = by_column(parallel, rank, axes, true);
    if (parallel->zero_stage >= 3) split_storage(parallel, rank, axes, &sharding);
    return sharding;
}

ct_sharding ct_parallel_gradient(const ct_parallel *parallel, int rank, const ct_axis *axes)
{
    ct_sharding sharding = by_column(parallel, rank, axes, true);
    if (parallel->zero_stage >= 2) split_storage(parallel, rank, axes, &sharding);
    return sharding;
}

ct_sharding ct_parallel_moment(const ct_parallel *parallel, int rank, const ct_axis *axes)
{
    ct_sharding sharding = by_column(parallel, rank, axes, true);
    split_storage(parallel, rank, axes, &sharding);
    return sharding;
}

/* What a point says under the recipe's options; NULL: nothing. */
static const char *point_text(const ct_parallel *parallel, const ct_sharding_point *point)
{
    if (parallel->sequence_parallel && point->sequence_parallel) return point->sequence_parallel;
    if (!parallel->loss_parallel && point->no_loss_parallel) return point->no_loss_parallel;
    return point->placement;
}

bool ct_parallel_point(const ct_parallel *parallel, const char *name, int rank, const ct_axis *axes,
                       ct_sharding *out_sharding)
{
    *out_sharding = (ct_sharding){0};
    const char *text = NULL;
    for (int i = 0; i < parallel->table->num_points; i++)
        if (!strcmp(parallel->table->points[i].name, name)) text = point_text(parallel, &parallel->table->points[i]);
    if (!text) return false;
    for (const char *word = text; *word; word += strspn(word, " ")) {
        size_t length = strcspn(word, " "), name_length = strcspn(word, "=");
        CT_ASSERT(name_length < length);
        int dim = find_dim(rank, axes, word, name_length);
        if (dim >= 0)
            split_by_words(parallel, out_sharding, dim, &axes[dim], word + name_length + 1, length - name_length - 1);
        word += length;
    }
    return true;
}

/* ---- checks ---- */

static ct_status *check_words(const ct_parallel *parallel, const char *axis, int64_t size, const char *words,
                              size_t length, const char *what)
{
    const ct_mesh *mesh = &parallel->mesh;
    int mesh_axes[CT_MAX_MESH_AXES], count = find_mesh_axes(mesh, words, length, mesh_axes);
    int64_t parts = product(mesh, count, mesh_axes);
    const ct_sharding_axis *row = find_row(parallel, axis);
    if (size % parts == 0 || (row && row->may_pad)) return NULL;
    ct_str text;
    ct_str_init(&text);
    for (int i = 0; i < count; i++)
        ct_str_printf(&text, "%s%s=%lld", i ? " " : "", mesh->axes[mesh_axes[i]].name,
                      (long long)mesh->axes[mesh_axes[i]].size);
    ct_status *status = ct_error(CT_CODE_INVALID_ARGUMENT,
                                 "axis %s of size %lld must be a multiple of %lld, the parts that %s splits it into "
                                 "over the mesh axes %s",
                                 axis, (long long)size, (long long)parts, what, text.data);
    ct_str_deinit(&text);
    return status;
}

ct_status *ct_parallel_check(const ct_parallel *parallel, int num_axes, const char *const *names, const int64_t *sizes)
{
    for (int i = 0; i < num_axes; i++) {
        const ct_sharding_axis *row = find_row(parallel, names[i]);
        if (!row) continue;
        const char *columns[2] = {row->activation, row->stored};
        for (int j = 0; j < 2; j++)
            if (columns[j])
                CT_TRY(check_words(parallel, names[i], sizes[i], columns[j], strlen(columns[j]), "the sharding table"));
        for (int j = 0; j < parallel->table->num_points; j++) {
            const char *text = point_text(parallel, &parallel->table->points[j]);
            for (const char *word = text ? text : ""; *word; word += strspn(word, " ")) {
                size_t length = strcspn(word, " "), name_length = strcspn(word, "=");
                if (strlen(names[i]) == name_length && !memcmp(word, names[i], name_length))
                    CT_TRY(check_words(parallel, names[i], sizes[i], word + name_length + 1, length - name_length - 1,
                                       parallel->table->points[j].name));
                word += length;
            }
        }
    }
    return NULL;
}

/* ---- ports ---- */

static void set_port(ct_graph *graph, ct_graph_port *port, const ct_sharding *sharding)
{
    CT_ASSERT(!sharding->partial);
    port->sharding = ct_arena_dup(&graph->arena, &sharding->at, sizeof(sharding->at));
    for (int i = 0; i < port->tensor->rank; i++)
        if (sharding->padded[i]) port->padded = ct_arena_dup(&graph->arena, sharding->padded, sizeof(sharding->padded));
}

void ct_parallel_set_input(ct_graph *graph, const ct_tensor *input, const ct_sharding *sharding)
{
    if (ct_graph_has_failed(graph)) return;
    for (int i = 0; i < graph->num_inputs; i++)
        if (graph->inputs[i].tensor == input) {
            set_port(graph, &graph->inputs[i], sharding);
            return;
        }
    CT_BUG("%s is not an input", ct_tensor_describe(input));
}

void ct_parallel_set_output(ct_graph *graph, int index, const ct_sharding *sharding)
{
    if (ct_graph_has_failed(graph)) return;
    CT_ASSERT(index >= 0 && index < graph->num_outputs);
    set_port(graph, &graph->outputs[index], sharding);
}
