#ifndef DEVICES_HEALTH_H
#define DEVICES_HEALTH_H

#include <stdint.h>

/* Waiting for a device to become healthy, without asking it again and again. One count for the
 * process goes up whenever a device may describe another state than before. Who waits for a device
 * reads the count, asks the devices, and waits until the count is another one. Any thread. */

uint32_t device_health_changes(void);

/* Called by a device after its describe() tells the new state; also ends the waits of others, who
 * then look again. */
void device_health_changed(void);

/* Returns when the count is no longer `seen`, or at `until_ns` (clock_now_ns() scale; UINT64_MAX:
 * no limit). */
void device_health_wait(uint32_t seen, uint64_t until_ns);

#endif
