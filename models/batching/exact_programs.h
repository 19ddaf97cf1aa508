#ifndef MODELS_BATCHING_EXACT_PROGRAMS_H
#define MODELS_BATCHING_EXACT_PROGRAMS_H

#include "models/model.h"

/* Programs of a model that cannot be padded, compiled when a shape is first asked for: a small
 * cache, least recently used goes first. */
typedef struct exact_programs exact_programs;
typedef struct exact_program exact_program;

#define EXACT_PROGRAMS_MAX 32

exact_programs *exact_programs_create(device *cpu);
void exact_programs_destroy(exact_programs *e); /* no program in use; accepts NULL */

/* The CPU's program of exactly that shape, pinned until given back. Compiles (blocking only this
 * thread) when it is not there, which counts in m->counters. Any thread. */
status exact_programs_acquire(const model *m, device_bucket shape, exact_program **entry,
                              device_program **program) MUST_CHECK;
void exact_programs_release(const model *m, exact_program *entry);

#endif
