/* The runner: the grid, and what windows and scratch hold from step to step. */
#include <math.h>
#include <string.h>

#include "module.h"

#define EXPECT(condition, ...)                                                                                         \
    do {                                                                                                               \
        if (!(condition)) return ct_error(CT_CODE_INVALID_ARGUMENT, __VA_ARGS__);                                      \
    } while (0)

typedef struct run {
    mosaic_module *module;
    const ct_array *operands;
    ct_array *results;
    int num_inputs; /* windows that are */
    int64_t grid[MAX_GRID];
} run;

static mosaic_value *window_value(const run *r, int index)
{
    return r->module->functions->args[r->module->num_grid + r->module->num_prefetched + index];
}

static const ct_array *window_array(const run *r, int index)
{
    return index < r->num_inputs ? &r->operands[r->module->num_prefetched + index] : &r->results[index - r->num_inputs];
}

static bool fits(const mosaic_type *type, const ct_array *array)
{
    static const ct_dtype dtypes[] = {CT_DTYPE_BOOL, CT_DTYPE_S32, CT_DTYPE_S32, CT_DTYPE_BF16, CT_DTYPE_F32};
    bool same = type->rank == array->rank && dtypes[type->element] == array->dtype;
    return same && (type->kind != KIND_SMEM || type->sizes[0] == array->sizes[0]);
}

/* ---- blocks ---- */

static int64_t num_blocks_of(const ct_array *array, const mosaic_window *window, int dim)
{
    return (array->sizes[dim] + window->sizes[dim] - 1) / window->sizes[dim];
}

static int64_t block_number(const ct_array *array, const mosaic_window *window)
{
    int64_t number = 0;
    for (int i = 0; i < array->rank; i++) number = number * num_blocks_of(array, window, i) + window->blocks[i];
    return number;
}

static int64_t num_blocks(const ct_array *array, const mosaic_window *window)
{
    int64_t number = 1;
    for (int i = 0; i < array->rank; i++) number *= num_blocks_of(array, window, i);
    return number;
}

/* The index in the array of element i of the shown block; -1: beyond its end. */
static int64_t array_index(const ct_array *array, const mosaic_window *window, int64_t element)
{
    int64_t index = 0, stride = 1;
    for (int i = array->rank - 1; i >= 0; i--) {
        int64_t at = window->blocks[i] * window->sizes[i] + element % window->sizes[i];
        if (at >= array->sizes[i]) return -1;
        index += at * stride;
        element /= window->sizes[i];
        stride *= array->sizes[i];
    }
    return index;
}

static void fetch(run *r, int index)
{
    mosaic_window *window = &r->module->windows[index];
    mosaic_value *value = window_value(r, index);
    const ct_array *array = window_array(r, index);
    window->num_fetches++;
    for (int64_t i = 0; i < value->count; i++) {
        int64_t at = array_index(array, window, i);
        double number = at < 0 ? NAN : ct_array_get(array, at);
        if (value->floats)
            value->floats[i] = (float)number;
        else
            value->integers[i] = at < 0 ? INT32_MAX : (int32_t)number;
        value->written[i] = true;
    }
}

static ct_status *flush(run *r, int index)
{
    mosaic_window *window = &r->module->windows[index];
    if (!window->is_shown) return NULL;
    mosaic_value *value = window_value(r, index);
    ct_array *array = &r->results[index - r->num_inputs];
    int64_t block = block_number(array, window);
    for (int64_t i = 0; i < value->count; i++) {
        int64_t at = array_index(array, window, i);
        if (at < 0) continue;
        EXPECT(value->written[i], "output %d leaves block %lld with element %lld not written", index - r->num_inputs,
               (long long)block, (long long)i);
        ct_array_set(array, at, value->floats ? (double)value->floats[i] : value->integers[i]);
    }
    window->visited[block] = true;
    window->is_shown = false;
    return NULL;
}

/* ---- steps ---- */

static void set_indices(const run *r, const mosaic_function *function)
{
    for (int i = 0; i < r->module->num_grid; i++) function->args[i]->integers[0] = (int32_t)r->grid[i];
}

static void set_tables(const run *r, const mosaic_function *function)
{
    for (int i = 0; i < r->module->num_prefetched; i++) {
        mosaic_value *table = function->args[r->module->num_grid + i];
        memcpy(table->integers, r->operands[i].data, (size_t)table->count * sizeof(int32_t));
        memset(table->written, true, (size_t)table->count * sizeof(bool));
    }
}

static ct_status *move_window(run *r, int index)
{
    mosaic_window *window = &r->module->windows[index];
    const ct_array *array = window_array(r, index);
    set_indices(r, window->transform);
    CT_TRY_NOTE(mosaic_execute_all(r->module, window->transform->body), "in the transform %s", window->transform->name);
    int64_t blocks[MAX_RANK];
    bool moves = !window->is_shown;
    for (int i = 0; i < array->rank; i++) {
        blocks[i] = window->transform->results[i]->integers[0];
        EXPECT(blocks[i] >= 0 && blocks[i] < num_blocks_of(array, window, i),
               "window %d leaves its array: block %lld of dim %d, of size %lld", index, (long long)blocks[i], i,
               (long long)array->sizes[i]);
        moves = moves || blocks[i] != window->blocks[i];
    }
    if (!moves) return NULL;
    bool is_output = index >= r->num_inputs;
    if (is_output) CT_TRY(flush(r, index));
    memcpy(window->blocks, blocks, sizeof(blocks));
    window->is_shown = true;
    if (!is_output) {
        fetch(r, index);
        return NULL;
    }
    EXPECT(!window->visited[block_number(array, window)], "output %d comes back to block %lld", index - r->num_inputs,
           (long long)block_number(array, window));
    mosaic_value *value = window_value(r, index);
    memset(value->written, 0, (size_t)value->count * sizeof(bool));
    return NULL;
}

/* Another core may take over: nothing stays in scratch or in outputs. */
static ct_status *forget(run *r)
{
    mosaic_module *module = r->module;
    for (int i = r->num_inputs; i < module->num_windows; i++) CT_TRY(flush(r, i));
    const mosaic_function *kernel = module->functions;
    for (int i = kernel->num_args - module->num_scratch; i < kernel->num_args; i++)
        memset(kernel->args[i]->written, 0, (size_t)kernel->args[i]->count * sizeof(bool));
    return NULL;
}

static ct_status *step(run *r)
{
    for (int i = 0; i < r->module->num_windows; i++) CT_TRY(move_window(r, i));
    set_indices(r, r->module->functions);
    r->module->is_busy = false;
    CT_TRY(mosaic_execute_all(r->module, r->module->functions->body));
    r->module->num_steps++;
    r->module->num_busy_steps += r->module->is_busy;
    return NULL;
}

/* The next point of the grid; false: there is none. moves_on: a parallel index has changed. */
static bool advance(run *r, bool *out_moves_on)
{
    *out_moves_on = false;
    for (int i = r->module->num_grid - 1; i >= 0; i--) {
        *out_moves_on = *out_moves_on || r->module->parallel[i];
        if (++r->grid[i] < r->module->bounds[i]) return true;
        r->grid[i] = 0;
    }
    return false;
}

static ct_status *run_grid(run *r)
{
    bool moves_on;
    CT_TRY(forget(r));
    do {
        CT_TRY_NOTE(step(r), "at step %lld of %s", (long long)r->module->num_steps, r->module->functions->name);
        bool more = advance(r, &moves_on);
        if (moves_on || !more) CT_TRY(forget(r));
        if (!more) break;
    } while (true);
    for (int i = r->num_inputs; i < r->module->num_windows; i++) {
        const ct_array *array = window_array(r, i);
        for (int64_t j = 0; j < num_blocks(array, &r->module->windows[i]); j++)
            EXPECT(r->module->windows[i].visited[j], "output %d never visits block %lld", i - r->num_inputs,
                   (long long)j);
    }
    return NULL;
}

ct_status *mosaic_run(mosaic_module *module, int num_operands, const ct_array *operands, int num_results,
                      ct_array *results)
{
    run r = {.module = module, .operands = operands, .results = results};
    r.num_inputs = num_operands - module->num_prefetched;
    EXPECT(r.num_inputs >= 0 && r.num_inputs + num_results == module->num_windows,
           "%s has %d tables and %d windows, found %d operands and %d results", module->functions->name,
           module->num_prefetched, module->num_windows, num_operands, num_results);
    for (int i = 0; i < module->num_prefetched; i++)
        EXPECT(fits(&module->functions->args[module->num_grid + i]->type, &operands[i]), "table %d does not fit", i);
    for (int i = 0; i < module->num_windows; i++) {
        mosaic_window *window = &module->windows[i];
        const ct_array *array = window_array(&r, i);
        EXPECT(fits(&window_value(&r, i)->type, array), "the array of window %d does not fit", i);
        window->is_shown = false;
        window->num_fetches = 0;
        window->visited = CT_ARENA_ARRAY(module->arena, bool, num_blocks(array, window));
    }
    module->num_steps = module->num_busy_steps = 0;
    module->num_flops = 0;
    for (const mosaic_function *f = module->functions; f; f = f->next) set_tables(&r, f);
    return run_grid(&r);
}

const char *mosaic_name(const mosaic_module *module)
{
    return module->functions->name;
}

int mosaic_num_prefetched(const mosaic_module *module)
{
    return module->num_prefetched;
}

int64_t mosaic_num_steps(const mosaic_module *module)
{
    return module->num_steps;
}

double mosaic_num_flops(const mosaic_module *module)
{
    return module->num_flops;
}

int64_t mosaic_num_busy_steps(const mosaic_module *module)
{
    return module->num_busy_steps;
}

int64_t mosaic_num_fetches(const mosaic_module *module, int input)
{
    return module->windows[input].num_fetches;
}
