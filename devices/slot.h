#ifndef DEVICES_SLOT_H
#define DEVICES_SLOT_H

#include "devices/device.h"

#define DEVICE_SLOTS_MAX 64

/* A slot of a device has one user at a time: the batcher's thread of that slot, a warm-up, or a
 * batch that falls back from another device. Returns `preferred` when it is free, else any free
 * slot, else waits for one. Uncontended: one atomic operation. Any thread. */
int device_slot_acquire(device *d, int preferred);
void device_slot_release(device *d, int slot);

#endif
