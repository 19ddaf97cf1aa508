#include "graph/name_map.h"

#include <stddef.h>
#include <string.h>

struct name_map_slot {
    const char *name; /* NULL: empty */
    uint32_t hash;
    int32_t number;
};

static uint32_t hash_name(const char *name)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *name != 0; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

/* The slot of the name, or the empty one where it belongs. */
static struct name_map_slot *find_slot(const name_map *map, const char *name, uint32_t hash)
{
    uint32_t i = hash & (map->slot_count - 1);
    while (map->slots[i].name != NULL &&
           (map->slots[i].hash != hash || strcmp(map->slots[i].name, name) != 0))
        i = (i + 1) & (map->slot_count - 1);
    return &map->slots[i];
}

static bool grow(name_map *map)
{
    name_map larger = {.memory = map->memory,
                       .slot_count = map->slot_count ? 2 * map->slot_count : 32};
    larger.slots = arena_allocate_zeroed(map->memory, larger.slot_count, sizeof larger.slots[0]);
    if (larger.slots == NULL)
        return false;
    for (uint32_t i = 0; i < map->slot_count; i++) {
        const struct name_map_slot *old = &map->slots[i];
        if (old->name != NULL)
            *find_slot(&larger, old->name, old->hash) = *old;
    }
    larger.used = map->used;
    *map = larger;
    return true;
}

bool name_map_put(name_map *map, const char *name, int32_t number)
{
    if (2 * (map->used + 1) > map->slot_count && !grow(map))
        return false;
    uint32_t hash = hash_name(name);
    struct name_map_slot *slot = find_slot(map, name, hash);
    if (slot->name == NULL)
        map->used++;
    *slot = (struct name_map_slot){name, hash, number};
    return true;
}

bool name_map_get(const name_map *map, const char *name, int32_t *number)
{
    if (map->slot_count == 0)
        return false;
    const struct name_map_slot *slot = find_slot(map, name, hash_name(name));
    if (slot->name == NULL)
        return false;
    *number = slot->number;
    return true;
}
