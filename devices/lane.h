#ifndef DEVICES_LANE_H
#define DEVICES_LANE_H

#include "devices/device.h"

#define DEVICE_LANES_MAX 64

/* A lane of a device has one user at a time: the batcher's thread of that lane, a warm-up, or a
 * batch of another device that fell back. Takes `preferred` when it is free, else any free lane,
 * else waits for one. Uncontended: one atomic operation. Any thread. */
int device_lane_take(device *d, int preferred);
void device_lane_give(device *d, int lane);

#endif
