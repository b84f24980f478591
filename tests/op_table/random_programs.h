/* Random programs with nested regions, checked in GRAD mode. */
#ifndef CT_TESTS_RANDOM_PROGRAMS_H
#define CT_TESTS_RANDOM_PROGRAMS_H

void op_check_random_program(int seed);

#endif
