#ifndef MODELS_BATCHING_EXACT_H
#define MODELS_BATCHING_EXACT_H

#include "models/model.h"

/* Programs of a model that cannot be padded, compiled when a shape is first asked for: a small
 * cache, least recently used goes first. */
typedef struct model_exact model_exact;
typedef struct model_exact_entry model_exact_entry;

#define MODEL_EXACT_PROGRAMS_MAX 32

model_exact *model_exact_create(device *cpu);
void model_exact_destroy(model_exact *e); /* no program in use; accepts NULL */

/* The CPU's program of exactly that shape, pinned until given back. Compiles (blocking only this
 * thread) when it is not there, which counts in m->counters-> Any thread. */
status model_exact_take(const model *m, device_bucket shape, model_exact_entry **entry,
                        device_program **program) MUST_CHECK;
void model_exact_give(const model *m, model_exact_entry *entry);

#endif
