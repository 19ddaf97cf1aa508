#ifndef TESTS_KERNELS_EMULATE_H
#define TESTS_KERNELS_EMULATE_H

#include <stdbool.h>
#include <stdint.h>

/* Executes in software what this CPU lacks: called from a SIGILL handler with its ucontext, it does
 * the instruction at the program counter and steps over it. False: not one that it knows. */
bool emulate_instruction(void *context);

/* True when code that needs these CPU features (kernels/cpu_features.h) can run that way. */
bool emulate_can(uint32_t missing_features);

/* Instructions done since the last call. */
uint64_t emulate_take_count(void);

#endif
