#ifndef MODELS_LOADING_CACHE_LIMIT_H
#define MODELS_LOADING_CACHE_LIMIT_H

#include <stdint.h>

/* Holds what is kept in the cache folder for the CPU (packed weights, graphs, encoders, hashes,
 * results of probes) within `bytes_max`: removes the files that were not used longest, and logs
 * how many. A model that uses one keeps it mapped. Programs of devices (`penstock compile`) are
 * never removed, and do not count. `folder` NULL or `bytes_max` 0: nothing happens. */
void cache_limit_apply(const char *folder, int64_t bytes_max);

#endif
