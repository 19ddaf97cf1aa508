#ifndef DEVICES_PJRT_HOST_PROFILE_H
#define DEVICES_PJRT_HOST_PROFILE_H

#include "devices/pjrt/plugin/plugin.h"

/* One profile at a time. It ends by itself, whether anybody asks for it or not. Any thread. */

/* Records for `duration_ns`, and returns at once. STATUS_RESOURCE_EXHAUSTED: one is recorded now;
 * STATUS_UNSUPPORTED: the plugin has no profiler. */
status host_profile_start(const pjrt_plugin *p, uint64_t duration_ns) MUST_CHECK;
/* Waits for its end; `*fd`: a memfd of `*bytes` bytes with an XSpace, which the caller closes.
 * STATUS_NOT_FOUND: there is none that was not taken. */
status host_profile_take(int *fd, uint64_t *bytes) MUST_CHECK;

#endif
