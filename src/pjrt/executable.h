/* A compiled program, loaded on the devices of a client, or (compiled for a topology) only to be looked at and saved.
 *
 *   text --ct_client_compile--> ct_executable --ct_executable_execute--> buffers, at once; the work goes on behind them
 *
 * Thread-safe: one executable may be executed by several threads.
 */
#ifndef CT_PJRT_EXECUTABLE_H
#define CT_PJRT_EXECUTABLE_H

#include "pjrt/buffer.h"
#include "pjrt/compile_options.h"

typedef struct ct_executable ct_executable;

/* Compiles StableHLO text (or MLIR bytecode) of text_bytes bytes for the client's devices.
 * Errors: INVALID_ARGUMENT for more devices than the client has; the compiler's own, with its text.
 */
CT_MUST_USE ct_status *ct_client_compile(ct_client *client, const char *text, size_t text_bytes,
                                         const ct_compile_opts *opts, ct_executable **out_executable);

/* 32 hexadecimal digits that stand for all that decides what is compiled: text, options, the build and flags of the
 * plugin, devices, and the machine. Errors: those of wrong options. */
CT_MUST_USE ct_status *ct_client_program_key(ct_client *client, const char *text, size_t text_bytes,
                                             const ct_compile_opts *opts, char out_key[33]);

void ct_executable_free(ct_executable *executable); /* NULL is allowed; running work goes on */

/* Whether the executable came out of opts->cache_folder instead of the compiler. */
bool ct_executable_is_from_cache(const ct_executable *executable);

size_t ct_executable_num_devices(const ct_executable *executable); /* this process's; 0 when not loaded */
size_t ct_executable_num_outputs(const ct_executable *executable); /* per device */

/* The device that runs row index of an execution. */
CT_MUST_USE ct_status *ct_executable_device(const ct_executable *executable, size_t index, ct_device **out_device);

/* Type and sizes of one output, as the plugin states them (per device on most plugins); data is NULL. */
CT_MUST_USE ct_status *ct_executable_output_shape(const ct_executable *executable, size_t output, ct_array *out_shape);

typedef struct ct_execute_opts {
    /* [num_arguments]: argument a of every device is given away. On success its buffers are freed and the caller's
     * pointers NULLed, whether or not the program could reuse the memory. Arguments not given away stay intact even
     * where the program is marked to reuse them. NULL gives nothing away. */
    const bool *donated;
    ct_event **out_done; /* [num_devices], ready when that device is done; NULL if not wanted */
} ct_execute_opts;

/* Starts the program on all its devices of this process, without waiting for arguments or results.
 *
 *   arguments    [num_devices, num_arguments] row-major, each on its row's device
 *   out_outputs  [num_devices, num_outputs]   row-major, the caller's to free
 *
 * Errors: FAILED_PRECONDITION when not loaded; the plugin's for wrong shapes or counts. On error out_outputs is all
 * NULL and arguments is as it was. An error during the run shows in the outputs and done events.
 */
CT_MUST_USE ct_status *ct_executable_execute(ct_executable *executable, ct_buffer **arguments, size_t num_arguments,
                                             const ct_execute_opts *opts, ct_buffer **out_outputs);

/* The compiler's accounting, bytes per device. */
typedef struct ct_executable_memory {
    int64_t code_bytes;
    int64_t argument_bytes;
    int64_t output_bytes; /* aliased ones included */
    int64_t alias_bytes;  /* outputs that live in donated arguments */
    int64_t temp_bytes;
    int64_t peak_bytes; /* 0 when the plugin does not say */
    int64_t host_argument_bytes;
    int64_t host_output_bytes;
    int64_t host_alias_bytes;
    int64_t host_temp_bytes;
} ct_executable_memory;
CT_MUST_USE ct_status *ct_executable_memory_stats(const ct_executable *executable, ct_executable_memory *out_memory);

/* The compiler's estimate for one execution and device; 0 where it gives none. */
typedef struct ct_executable_cost {
    double flops;
    double bytes_accessed;
    double optimal_seconds;
} ct_executable_cost;
CT_MUST_USE ct_status *ct_executable_cost_stats(const ct_executable *executable, ct_executable_cost *out_cost);

/* The optimized program as the plugin gives it, heap; format (in out_format, up to 32 bytes with its NUL) is
 * "hlo_with_config" on all plugins of XLA. hlo.h reads it.
 */
CT_MUST_USE ct_status *ct_executable_optimized(const ct_executable *executable, char out_format[32], char **out_bytes,
                                               size_t *out_size_bytes);

/* A compiled program in a file: written whole or not at all; read back only by the same build of the same plugin.
 * Errors: UNIMPLEMENTED if the plugin cannot serialize; FAILED_PRECONDITION for another plugin's file; DATA_LOSS for
 * a damaged one.
 */
CT_MUST_USE ct_status *ct_executable_save(ct_executable *executable, const char *path);
CT_MUST_USE ct_status *ct_executable_load(ct_client *client, const char *path, ct_executable **out_executable);

#endif
