#ifndef DEVICES_PJRT_CALIBRATION_H
#define DEVICES_PJRT_CALIBRATION_H

#include "devices/accuracy.h"
#include "devices/compile_cache.h"
#include "devices/device.h"
#include "graph/quantise/smooth.h"

/* What int8 with static scales needs to know of an encoder: how large each channel becomes that its
 * linear layers read; and what clipped attention needs to know: how large scores become. It runs in
 * FP32 on the CPU, on the model's samples or on generated ids. On the same sequences, forms of int8
 * are imitated in FP32 and compared.
 *
 * Kept in the compile cache, so that a second start measures nothing. */

/* Those of the models that are being compiled. Any thread. */
typedef struct pjrt_calibrations pjrt_calibrations;
typedef struct pjrt_calibration pjrt_calibration;

pjrt_calibrations *pjrt_calibrations_create(void);
void pjrt_calibrations_destroy(pjrt_calibrations *all);

/* The calibration of `model`, which is an encoder; nothing is measured yet. The caller releases it.
 */
pjrt_calibration *pjrt_calibration_obtain(pjrt_calibrations *all, const device_model *model);
void pjrt_calibration_release(pjrt_calibrations *all, pjrt_calibration *c); /* accepts NULL */

/* How many linear layers there are; and how layer `number` (graph/encoder/packed.h) rounds what it
 * reads. The numbers are unset before pjrt_calibration_measure(); the tensors live as long as the
 * calibration. */
int pjrt_calibration_linears(const pjrt_calibration *c);
const quantise_channels *pjrt_calibration_channels(const pjrt_calibration *c, int number);
/* A list of all layers, which the caller frees: zeros for those that are not in `linears` (bits
 * 1 << ENCODER_QKV ...). */
quantise_channels *pjrt_calibration_select(const pjrt_calibration *c, unsigned linears);

/* Sets the channels, and `*reached` to the accuracy of int8: with static scales in the linear
 * layers of `linears`, or 0: in all of them with a scale for each row.
 * Takes a second for a small encoder. `cache` may be NULL. Errors: those of running the model. */
status pjrt_calibration_measure(pjrt_calibration *c, const device_model *model,
                                compile_cache *cache, unsigned linears,
                                device_accuracy *reached) MUST_CHECK;
/* How far from 0 the largest attention score of a token is at most, scaled, on the same sequences,
 * with the largest relative bias. Errors: as above. */
status pjrt_calibration_measure_scores(pjrt_calibration *c, const device_model *model,
                                       compile_cache *cache, float *most) MUST_CHECK;
/* Whether it runs on samples of the operator's or on text, not on generated ids. */
bool pjrt_calibration_has_samples(const device_model *model);
/* "8 generated", "24 text", "20 warm-up": the sequences that it runs on. */
void pjrt_calibration_describe(const device_model *model, char *text, size_t bytes);

#endif
