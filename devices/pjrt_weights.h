#ifndef DEVICES_PJRT_WEIGHTS_H
#define DEVICES_PJRT_WEIGHTS_H

#include "devices/pjrt_supervisor.h"
#include "graph/emit_stablehlo.h"

/* The weights that a device host holds: each content once, however many programs (buckets) use it.
 * Any thread. */
typedef struct pjrt_weights pjrt_weights;

pjrt_weights *pjrt_weights_create(pjrt_supervisor *s);
/* Forgets them; the host ends with the supervisor. */
void pjrt_weights_destroy(pjrt_weights *w);

/* The number of the weight that `argument` describes, uploaded now if it is new; counted. Constants
 * of the model's files are recognised by model key and place (a reload of the same files finds them
 * without looking at their bytes), folded ones by content. */
status pjrt_weights_obtain(pjrt_weights *w, const device_model *model,
                           const stablehlo_argument *argument, uint32_t *number) MUST_CHECK;
void pjrt_weights_release(pjrt_weights *w, uint32_t number);

#endif
