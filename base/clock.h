#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

/* The only place that reads the time. Whatever decides takes `now_ns` as a parameter. */

/* Nanoseconds on a monotonic clock with an arbitrary start. */
uint64_t clock_now_ns(void);

/* Nanoseconds since 1970, for log lines and HTTP dates. */
uint64_t clock_wall_ns(void);

/* Processor time used by the calling thread. */
uint64_t clock_thread_cpu_ns(void);

#endif
