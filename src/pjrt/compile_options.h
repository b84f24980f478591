/* How a program is to be compiled, and its encoding as XLA's CompileOptionsProto. */
#ifndef CT_PJRT_COMPILE_OPTIONS_H
#define CT_PJRT_COMPILE_OPTIONS_H

#include "pjrt/value.h"

typedef enum ct_partitioner {
    CT_PARTITIONER_SHARDY, /* reads sdy.* attributes and ops */
    CT_PARTITIONER_GSPMD,  /* reads mhlo.sharding attributes */
} ct_partitioner;

typedef struct ct_compile_opts {
    int num_replicas;   /* 0 means 1 */
    int num_partitions; /* devices that one program is spread over; 0 means 1 */
    ct_partitioner partitioner;
    /* The device of replica r and partition p is device_ids[r * num_partitions + p]; NULL takes the client's (or the
     * topology's) devices in their order. */
    const int *device_ids;
    /* XLA's flags for this program alone, by name without dashes, for example xla_cpu_enable_fast_math. */
    const ct_named_value *flags;
    size_t num_flags;
    /* The folder of compiled programs, made when it is missing; NULL compiles always. It holds machine code: keep it
     * where only its owner can write. */
    const char *cache_folder;
} ct_compile_opts;

/* The message's bytes, heap. device_ids is of num_replicas * num_partitions and overrides opts'. Internal.
 * Errors: INVALID_ARGUMENT for a list as a flag's value or a flag without a name.
 */
CT_MUST_USE ct_status *ct__compile_options_encode(const ct_compile_opts *opts, const int *device_ids, char **out_bytes,
                                                  size_t *out_size_bytes);

#endif
