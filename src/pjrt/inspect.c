/* What a compiled program says of itself: shapes, memory, cost, the optimized program. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "pjrt/executable.h"
#include "pjrt/internal.h"

ct_status *ct_executable_device(const ct_executable *executable, size_t index, ct_device **out_device)
{
    *out_device = NULL;
    CT_ASSERT(index < executable->num_devices);
    PJRT_LoadedExecutable_AddressableDevices_Args args = {CT_PJRT_ARGS(PJRT_LoadedExecutable_AddressableDevices),
                                                          .executable = executable->loaded};
    CT_TRY(CT_PJRT(executable->plugin, PJRT_LoadedExecutable_AddressableDevices, &args));
    if (index < args.num_addressable_devices)
        *out_device = ct__client_device(executable->client, args.addressable_devices[index]);
    return *out_device ? NULL : ct_error(CT_CODE_INTERNAL, "device %zu of a program is not one of the client's", index);
}

ct_status *ct_executable_output_shape(const ct_executable *executable, size_t output, ct_array *out_shape)
{
    *out_shape = (ct_array){0};
    CT_ASSERT(output < executable->num_outputs);
    PJRT_Executable_OutputElementTypes_Args types = {CT_PJRT_ARGS(PJRT_Executable_OutputElementTypes),
                                                     .executable = executable->executable};
    PJRT_Executable_OutputDimensions_Args dims = {CT_PJRT_ARGS(PJRT_Executable_OutputDimensions),
                                                  .executable = executable->executable};
    CT_TRY(CT_PJRT(executable->plugin, PJRT_Executable_OutputElementTypes, &types));
    CT_TRY(CT_PJRT(executable->plugin, PJRT_Executable_OutputDimensions, &dims));
    if (types.num_output_types != executable->num_outputs || dims.num_outputs != executable->num_outputs)
        return ct_error(CT_CODE_INTERNAL, "the plugin gives %zu types and %zu shapes for %zu outputs",
                        types.num_output_types, dims.num_outputs, executable->num_outputs);
    size_t at = 0; /* all outputs' dimensions lie one after another */
    for (size_t i = 0; i < output; i++) at += dims.dim_sizes[i];
    if (dims.dim_sizes[output] > CT_MAX_RANK)
        return ct_error(CT_CODE_UNIMPLEMENTED, "an output may have at most %d dimensions, found %zu", CT_MAX_RANK,
                        dims.dim_sizes[output]);
    out_shape->dtype = ct__type_from_pjrt(types.output_types[output]);
    out_shape->rank = (int)dims.dim_sizes[output];
    for (int i = 0; i < out_shape->rank; i++) out_shape->sizes[i] = dims.dims[at + (size_t)i];
    if (out_shape->dtype == CT_DTYPE_INVALID)
        return ct_error(CT_CODE_UNIMPLEMENTED, "output %zu has the type %d in PJRT's numbering, which is not supported",
                        output, (int)types.output_types[output]);
    return NULL;
}

ct_status *ct_executable_memory_stats(const ct_executable *executable, ct_executable_memory *out_memory)
{
    *out_memory = (ct_executable_memory){0};
    PJRT_Executable_GetCompiledMemoryStats_Args args = {CT_PJRT_ARGS(PJRT_Executable_GetCompiledMemoryStats),
                                                        .executable = executable->executable};
    CT_TRY(CT_PJRT(executable->plugin, PJRT_Executable_GetCompiledMemoryStats, &args));
    *out_memory = (ct_executable_memory){
        .code_bytes = args.generated_code_size_in_bytes,
        .argument_bytes = args.argument_size_in_bytes,
        .output_bytes = args.output_size_in_bytes,
        .alias_bytes = args.alias_size_in_bytes,
        .temp_bytes = args.temp_size_in_bytes,
        .peak_bytes = args.peak_memory_in_bytes,
        .host_argument_bytes = args.host_argument_size_in_bytes,
        .host_output_bytes = args.host_output_size_in_bytes,
        .host_alias_bytes = args.host_alias_size_in_bytes,
        .host_temp_bytes = args.host_temp_size_in_bytes,
    };
    return NULL;
}

ct_status *ct_executable_cost_stats(const ct_executable *executable, ct_executable_cost *out_cost)
{
    *out_cost = (ct_executable_cost){0};
    PJRT_Executable_GetCostAnalysis_Args args = {CT_PJRT_ARGS(PJRT_Executable_GetCostAnalysis),
                                                 .executable = executable->executable};
    CT_TRY(CT_PJRT(executable->plugin, PJRT_Executable_GetCostAnalysis, &args));
    struct {
        const char *name;
        double *value;
    } wanted[] = {
        {"flops", &out_cost->flops},
        {"bytes accessed", &out_cost->bytes_accessed},
        {"optimal_seconds", &out_cost->optimal_seconds},
    };
    for (size_t i = 0; i < args.num_properties; i++) {
        const PJRT_NamedValue *property = &args.properties[i];
        for (size_t j = 0; j < CT_COUNT(wanted); j++)
            if (property->type == PJRT_NamedValue_kFloat && property->name_size == strlen(wanted[j].name) &&
                !memcmp(property->name, wanted[j].name, property->name_size))
                *wanted[j].value = CT_MAX((double)property->float_value, 0.0);
    }
    return NULL;
}

ct_status *ct_executable_optimized(const ct_executable *executable, char out_format[32], char **out_bytes,
                                   size_t *out_size_bytes)
{
    out_format[0] = 0;
    *out_bytes = NULL;
    *out_size_bytes = 0;
    PJRT_Program program = {.struct_size = PJRT_Program_STRUCT_SIZE};
    PJRT_Executable_OptimizedProgram_Args args = {CT_PJRT_ARGS(PJRT_Executable_OptimizedProgram),
                                                  .executable = executable->executable, .program = &program};
    CT_TRY(CT_PJRT(executable->plugin, PJRT_Executable_OptimizedProgram, &args));
    size_t size_bytes = program.code_size;
    program.code = ct_alloc_zeroed(size_bytes + 1, 1);
    ct_status *status = CT_PJRT(executable->plugin, PJRT_Executable_OptimizedProgram, &args);
    if (!status && program.code_size > size_bytes)
        status = ct_error(CT_CODE_INTERNAL, "the plugin asked for %zu bytes for a program and then speaks of %zu",
                          size_bytes, program.code_size);
    if (status) {
        free(program.code);
        return status;
    }
    size_t length = program.format ? CT_MIN(program.format_size, (size_t)31) : 0;
    if (length) memcpy(out_format, program.format, length);
    out_format[length] = 0;
    *out_bytes = program.code;
    *out_size_bytes = program.code_size;
    return NULL;
}
