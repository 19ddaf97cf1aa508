#ifndef DEVICES_PJRT_CHOICE_H
#define DEVICES_PJRT_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "devices/accuracy.h"
#include "devices/device.h"
#include "graph/encoder/packed.h"
#include "graph/stablehlo/program.h"

/* Which of several programs with the same promise of accuracy a bucket gets: the one that the
 * compiler expects to be the fastest. */

/* A way to compute the same thing. */
typedef struct pjrt_candidate {
    char name[64]; /* "int8", "bf16" ...: unique in its list */
    stablehlo_options options;
    /* Bits 1 << ENCODER_QKV ...: linear layers in int8 with static scales (calibration.h). */
    unsigned static_linears;
    bool is_rebuilt; /* an encoder's graph is built in that form */
    encoder_form form;
} pjrt_candidate;

#define PJRT_CANDIDATES_MAX 32

/* What may stand for the model's precision at a bucket, on a device of that kind: programs at least
 * as accurate as the promise. The default comes first, then what a first start tries, then what
 * only tuning tries. Returns how many, at least one. */
int pjrt_candidates(const device_model *model, device_bucket bucket, const char *device_kind,
                    bool is_tuning, pjrt_candidate out[PJRT_CANDIDATES_MAX]);

/* Whether some of its linear layers multiply 8-bit integers. */
bool pjrt_candidate_is_int8(const pjrt_candidate *c);

/* Leaves out what clips attention scores: forms with the maximum of a row take its place. Returns
 * how many remain, in their order. */
int pjrt_candidates_without_clipping(pjrt_candidate *candidates, int count);

/* A schedule does not show waiting for memory: what differs by less says nothing. */
#define PJRT_SCHEDULE_MARGIN 0.02

/* Of their names and forms: another one when a release of Penstock has other forms. */
uint64_t pjrt_candidates_hash(const pjrt_candidate *candidates, int count);

typedef struct pjrt_trial {
    char name[64];
    int64_t cycles;    /* estimated; 0: the compiler estimates none */
    int unestimated;   /* instructions that are not in the sum */
    int64_t scheduled; /* cycles of the schedule (schedule/dump.h); 0: not counted */
    /* Its results, where it ran on a plugin beside FP32 (answers.h), and whether they break the
     * promise. */
    bool is_executed, is_apart;
    device_accuracy answers;
    /* Of int8 that would have been chosen: what the accuracy check found. */
    bool is_checked, is_rejected;
    device_accuracy accuracy;
} pjrt_trial;

typedef struct pjrt_choice {
    pjrt_trial trials[PJRT_CANDIDATES_MAX];
    int count;           /* 0: there was nothing to choose */
    int chosen;          /* of `trials` */
    int left_out;        /* candidates that failed, or that the budget did not reach */
    bool is_tuned;       /* all that there is was tried, within a budget */
    bool is_by_schedule; /* the schedule decides before the estimate */
    /* "clipped", or "maximum" where they are too large to be clipped, and why; "": attention scores
     * had no part in the choice. */
    char scores[12], scores_reason[120];
} pjrt_choice;

/* Sets `chosen`: the fewest estimated cycles of those that no check has found to break the promise;
 * among equals the earlier one. Without an estimate, or if all break it, the first one. By
 * schedule: the fewest scheduled cycles, and among those that differ by less than
 * PJRT_SCHEDULE_MARGIN the fewest estimated ones. */
void pjrt_choice_decide(pjrt_choice *c);
/* How many of these candidates have been tried. */
int pjrt_choice_count(const pjrt_choice *c, const pjrt_candidate *candidates, int count);
/* Why that one, in words. */
const char *pjrt_choice_reason(const pjrt_choice *c);
/* The same, with what became of attention scores: "the default (attention scores clipped: the
 * largest of 24 text sequences is 7.3, at most 32)". Returns `text`. */
const char *pjrt_choice_explain(const pjrt_choice *c, char text[300]);

/* "900", with a schedule "900 (400 scheduled)", and of a program that was checked "900 (cosine to
 * FP32: mean 0.99782, lowest 0.9919)", with ", too low". Returns `text`. */
const char *pjrt_trial_describe(const pjrt_trial *t, char text[120]);

#define PJRT_CHOICE_BYTES 5120
/* Lines for a cache entry; returns the bytes written. */
int pjrt_choice_write(const pjrt_choice *c, char out[PJRT_CHOICE_BYTES]);
/* STATUS_CORRUPT: it was not written so. */
status pjrt_choice_read(const char *text, pjrt_choice *out) MUST_CHECK;

#endif
