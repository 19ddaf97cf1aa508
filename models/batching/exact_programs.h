#ifndef MODELS_BATCHING_EXACT_PROGRAMS_H
#define MODELS_BATCHING_EXACT_PROGRAMS_H

#include "models/model.h"

/* A model that cannot be padded runs at each request's own shape, on the CPU. Its programs are
 * compiled when a shape is first asked for and kept in a small cache; the least recently used is
 * evicted first. */
typedef struct exact_programs exact_programs;
typedef struct exact_program exact_program;

#define EXACT_PROGRAMS_MAX 32

/* NULL when memory is out. `cpu` is borrowed. */
exact_programs *exact_programs_create(device *cpu);
void exact_programs_destroy(exact_programs *e); /* no program in use; accepts NULL */

/* The CPU's program of exactly that shape, kept until `*entry` is released. Compiles it where it is
 * missing, which blocks only the caller and counts in m->counters. Any thread. */
status exact_programs_acquire(const model *m, device_bucket shape, exact_program **entry,
                              device_program **program) MUST_CHECK;
void exact_programs_release(const model *m, exact_program *entry);

#endif
