#ifndef GRAPH_NAME_MAP_H
#define GRAPH_NAME_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* A hash map from names to numbers: open addressing, linear probing; entries are never removed.
 * Empty when all but `memory` is zero. Names are borrowed and must outlive the map. */
typedef struct name_map {
    arena *memory;
    struct name_map_slot *slots;
    uint32_t slot_count, used; /* slot_count is a power of two, or 0 */
} name_map;

/* Adds a name, or replaces its number. False: out of memory. */
bool name_map_put(name_map *map, const char *name, int32_t number);
/* The number of a name; false: no such name. */
bool name_map_get(const name_map *map, const char *name, int32_t *number);

#endif
