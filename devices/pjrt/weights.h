#ifndef DEVICES_PJRT_WEIGHTS_H
#define DEVICES_PJRT_WEIGHTS_H

#include "devices/pjrt/supervisor/supervisor.h"
#include "graph/stablehlo/emit.h"

/* The weights that a device host holds: each content once, however many programs (buckets) use it.
 * Any thread. */
typedef struct pjrt_weights pjrt_weights;

pjrt_weights *pjrt_weights_create(pjrt_supervisor *s);
/* Forgets them; the host ends with the supervisor. */
void pjrt_weights_destroy(pjrt_weights *w);

/* The number of the weight that `argument` of a program of graph `g` is, uploaded now if it is new;
 * counted. Equal contents are one weight, in whatever models they are. */
status pjrt_weights_obtain(pjrt_weights *w, const graph *g, const stablehlo_argument *argument,
                           uint32_t *number) MUST_CHECK;
/* Gives back what one obtain gave; `g` still lives. */
void pjrt_weights_release(pjrt_weights *w, const graph *g, uint32_t number);

#endif
