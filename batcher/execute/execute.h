#ifndef BATCHER_EXECUTE_EXECUTE_H
#define BATCHER_EXECUTE_EXECUTE_H

#include "batcher/execute/worker.h"

/* Runs members [first, first + count) of the worker's batch once, on that device: finds the
 * program, pads, waits for a slot, executes, slices, and learns how long it took.
 *
 * STATUS_UNAVAILABLE: the device is gone or has no program for the batch; another one may run it.
 * STATUS_OUT_OF_MEMORY. Other failures are the members' fault. */
status execute_members(worker *w, int device_index, int first, int count) MUST_CHECK;

#endif
