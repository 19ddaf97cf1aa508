#ifndef DEVICES_PJRT_HOST_SLOT_H
#define DEVICES_PJRT_HOST_SLOT_H

#include "devices/pjrt/host/objects.h"

/* Runs batches, one at a time, in the shared memory of an execution slot. */

typedef struct host_slot {
    host_objects *objects;
    int device, request_fd, reply_fd;
    pjrt_slot_memory *memory;
} host_slot;

/* The slot's thread: `slot` is a host_slot. Never returns. */
void *host_slot_serve(void *slot);

#endif
