/* ct_compile_opts to CompileOptionsProto; the messages live on an arena for the time of the call. */
#include "pjrt/compile_options.h"

#include <stdlib.h>
#include <xla.pb-c.h>

#include "base/alloc.h"

static Xla__DeviceAssignmentProto *make_assignment(ct_arena *arena, int num_replicas, int num_partitions,
                                                   const int *device_ids)
{
    Xla__DeviceAssignmentProto *assignment = CT_ARENA_NEW(arena, Xla__DeviceAssignmentProto);
    xla__device_assignment_proto__init(assignment);
    assignment->replica_count = num_replicas;
    assignment->computation_count = num_partitions;
    assignment->n_computation_devices = (size_t)num_partitions;
    assignment->computation_devices =
        CT_ARENA_ARRAY(arena, Xla__DeviceAssignmentProto__ComputationDevice *, num_partitions);
    for (int p = 0; p < num_partitions; p++) {
        Xla__DeviceAssignmentProto__ComputationDevice *devices =
            CT_ARENA_NEW(arena, Xla__DeviceAssignmentProto__ComputationDevice);
        xla__device_assignment_proto__computation_device__init(devices);
        devices->n_replica_device_ids = (size_t)num_replicas;
        devices->replica_device_ids = CT_ARENA_ARRAY(arena, int64_t, num_replicas);
        for (int r = 0; r < num_replicas; r++) devices->replica_device_ids[r] = device_ids[r * num_partitions + p];
        assignment->computation_devices[p] = devices;
    }
    return assignment;
}

static ct_status *make_override(ct_arena *arena, const ct_named_value *flag, Xla__OptionOverrideProto **out_override)
{
    Xla__OptionOverrideProto *override = CT_ARENA_NEW(arena, Xla__OptionOverrideProto);
    xla__option_override_proto__init(override);
    *out_override = override;
    switch (flag->type) {
    case CT_VALUE_TEXT:
        override->value_case = XLA__OPTION_OVERRIDE_PROTO__VALUE_STRING_FIELD;
        override->string_field = ct_arena_strdup(arena, flag->text);
        return NULL;
    case CT_VALUE_INT:
        override->value_case = XLA__OPTION_OVERRIDE_PROTO__VALUE_INT_FIELD;
        override->int_field = flag->integer;
        return NULL;
    case CT_VALUE_FLOAT:
        override->value_case = XLA__OPTION_OVERRIDE_PROTO__VALUE_DOUBLE_FIELD;
        override->double_field = flag->number;
        return NULL;
    case CT_VALUE_BOOL:
        override->value_case = XLA__OPTION_OVERRIDE_PROTO__VALUE_BOOL_FIELD;
        override->bool_field = flag->boolean;
        return NULL;
    case CT_VALUE_INT_LIST: break;
    }
    return ct_error(CT_CODE_INVALID_ARGUMENT, "the XLA flag %s must be text, a number or a boolean, not a list",
                    flag->name);
}

static ct_status *make_options(ct_arena *arena, const ct_compile_opts *opts, const int *device_ids,
                               Xla__CompileOptionsProto **out_options)
{
    int num_replicas = opts->num_replicas ? opts->num_replicas : 1;
    int num_partitions = opts->num_partitions ? opts->num_partitions : 1;
    Xla__ExecutableBuildOptionsProto *build = CT_ARENA_NEW(arena, Xla__ExecutableBuildOptionsProto);
    xla__executable_build_options_proto__init(build);
    build->device_ordinal = -1;
    build->num_replicas = num_replicas;
    build->num_partitions = num_partitions;
    build->use_spmd_partitioning = true;
    build->use_shardy_partitioner = opts->partitioner == CT_PARTITIONER_SHARDY;
    build->device_assignment = make_assignment(arena, num_replicas, num_partitions, device_ids);

    Xla__CompileOptionsProto *options = CT_ARENA_NEW(arena, Xla__CompileOptionsProto);
    xla__compile_options_proto__init(options);
    options->executable_build_options = build;
    options->n_env_option_overrides = opts->num_flags;
    options->env_option_overrides =
        CT_ARENA_ARRAY(arena, Xla__CompileOptionsProto__EnvOptionOverridesEntry *, opts->num_flags);
    for (size_t i = 0; i < opts->num_flags; i++) {
        Xla__CompileOptionsProto__EnvOptionOverridesEntry *entry =
            CT_ARENA_NEW(arena, Xla__CompileOptionsProto__EnvOptionOverridesEntry);
        xla__compile_options_proto__env_option_overrides_entry__init(entry);
        if (!opts->flags[i].name || !opts->flags[i].name[0])
            return ct_error(CT_CODE_INVALID_ARGUMENT, "XLA flag %zu has no name", i);
        entry->key = ct_arena_strdup(arena, opts->flags[i].name);
        CT_TRY(make_override(arena, &opts->flags[i], &entry->value));
        options->env_option_overrides[i] = entry;
    }
    *out_options = options;
    return NULL;
}

ct_status *ct__compile_options_encode(const ct_compile_opts *opts, const int *device_ids, char **out_bytes,
                                      size_t *out_size_bytes)
{
    *out_bytes = NULL;
    *out_size_bytes = 0;
    ct_arena arena;
    ct_arena_init(&arena);
    Xla__CompileOptionsProto *options = NULL;
    ct_status *status = make_options(&arena, opts, device_ids, &options);
    if (!status) {
        *out_size_bytes = xla__compile_options_proto__get_packed_size(options);
        *out_bytes = ct_alloc(*out_size_bytes);
        xla__compile_options_proto__pack(options, (uint8_t *)*out_bytes);
    }
    ct_arena_deinit(&arena);
    return status;
}
