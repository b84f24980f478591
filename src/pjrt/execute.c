/* Execution: one block of memory holds the plugin's lists for the time of the call.
 *
 *   rows of argument lists | rows of output lists | arguments [D, A] | outputs [D, O] | events [D]
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "pjrt/executable.h"
#include "pjrt/internal.h"

typedef struct {
    size_t num_devices, num_arguments, num_outputs;
    void *block;
    PJRT_Buffer ***argument_rows;
    PJRT_Buffer ***output_rows;
    PJRT_Buffer **arguments;
    PJRT_Buffer **outputs;
    PJRT_Event **events;
    int64_t *kept; /* arguments that must not be reused */
    size_t num_kept;
} launch;

static void launch_init(launch *l, const ct_executable *executable, ct_buffer **arguments, size_t num_arguments,
                        const bool *donated)
{
    size_t devices = executable->num_devices, outputs = executable->num_outputs;
    *l = (launch){.num_devices = devices, .num_arguments = num_arguments, .num_outputs = outputs};
    size_t num_pointers = devices * (3 + num_arguments + outputs);
    l->block = ct_alloc_zeroed(num_pointers * sizeof(void *) + num_arguments * sizeof(int64_t) + 1, 1);
    l->argument_rows = l->block;
    l->output_rows = l->argument_rows + devices;
    l->arguments = (PJRT_Buffer **)(l->output_rows + devices);
    l->outputs = l->arguments + devices * num_arguments;
    l->events = (PJRT_Event **)(l->outputs + devices * outputs);
    l->kept = (int64_t *)(l->events + devices);
    for (size_t d = 0; d < devices; d++) {
        l->argument_rows[d] = l->arguments + d * num_arguments;
        l->output_rows[d] = l->outputs + d * outputs;
    }
    for (size_t i = 0; i < devices * num_arguments; i++) l->arguments[i] = arguments[i]->buffer;
    for (size_t a = 0; a < num_arguments; a++)
        if (!donated || !donated[a]) l->kept[l->num_kept++] = (int64_t)a;
}

/* Wraps what came out; on error everything of it is gone. */
static ct_status *take_results(const launch *l, ct_executable *executable, ct_event **out_done, ct_buffer **out_outputs)
{
    ct_plugin *plugin = executable->plugin;
    ct_status *status = NULL;
    for (size_t i = 0; i < l->num_devices * l->num_outputs; i++)
        status = ct_status_first(status, ct__buffer_new(executable->client, l->outputs[i], &out_outputs[i]));
    for (size_t d = 0; out_done && d < l->num_devices; d++)
        status = ct_status_first(status, ct__event_new(plugin, l->events[d], &out_done[d]));
    if (!status) return NULL;
    ct_buffers_free(out_outputs, l->num_devices * l->num_outputs);
    for (size_t d = 0; out_done && d < l->num_devices; d++) {
        ct_event_free(out_done[d]);
        out_done[d] = NULL;
    }
    return status;
}

ct_status *ct_executable_execute(ct_executable *executable, ct_buffer **arguments, size_t num_arguments,
                                 const ct_execute_opts *opts, ct_buffer **out_outputs)
{
    static const ct_execute_opts defaults = {0};
    if (!opts) opts = &defaults;
    size_t num_devices = executable->num_devices;
    for (size_t i = 0; i < num_devices * executable->num_outputs; i++) out_outputs[i] = NULL;
    for (size_t d = 0; opts->out_done && d < num_devices; d++) opts->out_done[d] = NULL;
    if (!executable->loaded)
        return ct_error(CT_CODE_FAILED_PRECONDITION, "a program compiled for a topology cannot run here");
    for (size_t i = 0; i < num_devices * num_arguments; i++)
        if (!arguments[i])
            return ct_error(CT_CODE_INVALID_ARGUMENT, "argument %zu of device %zu is missing (donated before?)",
                            i % num_arguments, i / num_arguments);
    launch l;
    launch_init(&l, executable, arguments, num_arguments, opts->donated);
    PJRT_ExecuteOptions options = {.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE,
                                   .non_donatable_input_indices = l.kept,
                                   .num_non_donatable_input_indices = l.num_kept};
    PJRT_LoadedExecutable_Execute_Args args = {
        CT_PJRT_ARGS(PJRT_LoadedExecutable_Execute),
        .executable = executable->loaded,
        .options = &options,
        .argument_lists = (PJRT_Buffer *const *const *)l.argument_rows,
        .num_devices = num_devices,
        .num_args = num_arguments,
        .output_lists = (PJRT_Buffer * *const *)l.output_rows,
        .device_complete_events = opts->out_done ? l.events : NULL,
    };
    ct_status *status = CT_PJRT(executable->plugin, PJRT_LoadedExecutable_Execute, &args);
    if (!status) status = take_results(&l, executable, opts->out_done, out_outputs);
    free(l.block);
    if (status || !opts->donated) return status;
    for (size_t i = 0; i < num_devices * num_arguments; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): without arguments there is no i */
        if (!opts->donated[i % num_arguments]) continue;
        ct_buffer_free(arguments[i]);
        arguments[i] = NULL;
    }
    return NULL;
}
