#ifndef DEVICES_PJRT_WEIGHTS_H
#define DEVICES_PJRT_WEIGHTS_H

#include "devices/pjrt/supervisor/supervisor.h"
#include "graph/stablehlo/emit.h"

/* The weights on the devices of a host: equal contents are uploaded once, however many programs use
 * them. Any thread. */
typedef struct pjrt_weights pjrt_weights;

pjrt_weights *pjrt_weights_create(pjrt_supervisor *s);
/* Does not remove them from the host, which ends with the supervisor. */
void pjrt_weights_destroy(pjrt_weights *w);

/* The number of the weight for `argument` of a program of graph `g`; uploads it if it is new, and
 * counts a reference. Equal contents are one weight, also across models. */
status pjrt_weights_obtain(pjrt_weights *w, const graph *g, const stablehlo_argument *argument,
                           uint32_t *number) MUST_CHECK;
/* Bytes on each device. */
int64_t pjrt_weights_bytes(pjrt_weights *w);
/* The same with those of `program` of `g`. Not exact: at least as much, without hashing. */
int64_t pjrt_weights_bytes_with(pjrt_weights *w, const graph *g, const stablehlo_program *program,
                                bool is_exact);
/* Ends one reference; `g` still exists. */
void pjrt_weights_release(pjrt_weights *w, const graph *g, uint32_t number);

#endif
