/* Random programs with nested regions, checked in the modes GRAD and SHARD. */
#ifndef CT_TESTS_RANDOM_PROGRAMS_H
#define CT_TESTS_RANDOM_PROGRAMS_H

void op_check_random_program(int seed);
void op_check_random_sharded(int seed);

#endif
