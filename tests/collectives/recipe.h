/* The training step of a small Qwen3 of two scanned layers, compiled for a topology, held against the rules. */
#ifndef TESTS_COLLECTIVES_RECIPE_H
#define TESTS_COLLECTIVES_RECIPE_H

#include "rules.h"

/* Compiles for the topology with the chip's default forms and flags, tensor_parallel_degree tp (with sequence parallel)
 * and FSDP over the rest, and checks what it sends and the bytes of its arguments. options are further overrides of the
 * recipe, may be NULL. Fails the test that called it. */
void check_recipe(const char *topology_name, int64_t tp, const char *const *options, size_t num_options);

#endif
