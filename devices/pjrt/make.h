#ifndef DEVICES_PJRT_MAKE_H
#define DEVICES_PJRT_MAKE_H

#include "devices/pjrt/calibration.h"
#include "devices/pjrt/choice.h"
#include "devices/pjrt/program.h"

/* Makes the program of a bucket, for the serving device and for `penstock compile`: out of the
 * compile cache, or by compiling what may stand for the promised precision and keeping the best. */

typedef struct pjrt_binary {
    void *data; /* serialised by the plugin */
    size_t bytes;
    int fd; /* the memfd that `data` maps; -1: it is malloc'd */
} pjrt_binary;

/* Accepts a zeroed one with fd -1. */
void pjrt_binary_dispose(pjrt_binary *b);

typedef struct pjrt_maker {
    compile_cache *cache; /* NULL: none */
    bool ignores_cache;   /* reads nothing from it */
    bool is_cache_only;   /* compiles nothing */
    bool is_tuning;       /* tries everything, unless that has been done */
    double tune_seconds;  /* starts no compilation of a bucket after so many; 0: no limit */
    bool is_by_schedule;  /* chooses by schedules, which `compile` counts */
    const char *device_kind, *compiler;
    /* The same compiler where it ran ahead of time, without a device: entries of it are used where
     * there is none of `compiler`. NULL: there is no difference. */
    const char *ahead_compiler;
    pjrt_calibrations *calibrations;
    void *context;
    /* Compiles for the device; `out` and `binary` are zeroed, fd -1. */
    status (*compile)(void *context, const device_model *model, device_bucket bucket,
                      const stablehlo_program *program, pjrt_compiled *out, pjrt_binary *binary);
    /* Runs a candidate that tuning would choose beside FP32, answers.h; NULL: nothing is checked.
     * STATUS_UNAVAILABLE: nothing can be checked any more. */
    status (*check)(void *context, const device_model *model, device_bucket bucket,
                    const pjrt_candidate *candidate, device_accuracy *out);
} pjrt_maker;

typedef struct pjrt_made {
    graph *specialised; /* NULL: an exported program */
    /* Whose factors the program's arguments may refer to; NULL: none. */
    pjrt_calibrations *calibrations;
    pjrt_calibration *calibration;
    stablehlo_program program;
    pjrt_binary binary;
    pjrt_compiled facts;
    pjrt_candidate candidate;
    pjrt_choice choice;      /* count 0: there was no choice */
    bool is_cached, is_kept; /* it came from the cache; it is there now */
} pjrt_made;

/* The caller disposes of `*out`. STATUS_NOT_FOUND: not in the cache, and nothing may be compiled.
 */
status pjrt_make(const pjrt_maker *maker, const device_model *model, device_bucket bucket,
                 pjrt_made *out) MUST_CHECK;
void pjrt_made_dispose(pjrt_made *m);

#endif
