/* Compiled programs as other tools write them.
 *
 *   text     XLA's own print: JAX's compiled.as_text(), *.txt of --xla_dump_to
 *   binary   HloModuleProto, HloProto, HloModuleProtoWithConfig: *.pb of --xla_dump_to, hlo_modules()[0]
 *            .as_serialized_hlo_module_proto()
 *
 * Text is read by brackets and quotes, not by lines: an instruction may span lines, and a computation may end in
 * "}, execution_thread=...". An asynchronous operation that text writes in short ("custom-call-start(...),
 * custom_call_target=...") keeps that opcode; in binary form it is an "async-start" that calls a computation.
 */
#ifndef CT_PJRT_HLO_TEXT_H
#define CT_PJRT_HLO_TEXT_H

#include "pjrt/hlo.h"

/* Reads a program of any of these kinds; which one is found by looking. Everything is in arena; bytes are not kept.
 * path is for messages. Errors: INVALID_ARGUMENT "path:line: what is wrong" for text, and for StableHLO, which is what
 * a compiler takes; DATA_LOSS for binary that cannot be read. */
CT_MUST_USE ct_status *ct_hlo_parse(ct_arena *arena, const void *bytes, size_t size_bytes, const char *path,
                                    ct_hlo_module **out_module);

/* The same of a file. */
CT_MUST_USE ct_status *ct_hlo_read_file(ct_arena *arena, const char *path, ct_hlo_module **out_module);

#endif
