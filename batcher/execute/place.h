#ifndef BATCHER_EXECUTE_PLACE_H
#define BATCHER_EXECUTE_PLACE_H

#include "batcher/execute/worker.h"
#include "models/batching/exact_programs.h"

/* Where a batch runs: a program on a device, and one of the device's execution slots. */
typedef struct place {
    int device_index;
    int bucket; /* index of model->buckets; -1: exact */
    device_program *program;
    exact_program *exact; /* acquired; NULL: the program is one of the model's */
    int slot;             /* -1: none yet */
} place;

/* The program of the worker's batch on that device: that of its bucket or, where the device has
 * none, of another bucket that holds the batch. An exact program is compiled if it is new.
 * STATUS_UNAVAILABLE: there is none. */
status place_find_program(const worker *w, int device_index, place *out) MUST_CHECK;

/* Waits for an execution slot of the device and stamps the stage. Returns when it was given. */
uint64_t place_acquire_slot(worker *w, place *p);

/* Releases the slot, so that another batch computes while this one's outputs are copied. */
void place_release_slot(worker *w, place *p);
/* Releases the program too. */
void place_release(worker *w, place *p);

#endif
