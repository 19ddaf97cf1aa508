#ifndef DEVICES_PJRT_HOST_SLOT_H
#define DEVICES_PJRT_HOST_SLOT_H

#include "devices/pjrt/host/objects.h"

/* Runs batches, one at a time, in the shared memory of an execution slot. */

typedef struct host_slot {
    host_objects *objects;
    int device, request_fd, reply_fd;
    pjrt_slot_memory *memory;
    size_t bytes;         /* of the memory */
    pthread_mutex_t lock; /* held while a batch runs */
    size_t pinned_bytes;  /* of its tensors */
    bool cannot_pin;
    struct host_slot *next;
} host_slot;

/* The slot's thread: `slot` is a host_slot. Never returns. */
void *host_slot_serve(void *slot);

/* The process ends: unpins the memory, unless a batch runs. The slot takes no more batches. */
void host_slot_end(host_slot *slot);

#endif
