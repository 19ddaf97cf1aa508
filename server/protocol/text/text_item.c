#include "server/protocol/text/text_item.h"

status text_list_add(text_list *l, arena *memory, text_item item)
{
    if (l->count == l->capacity) {
        int64_t capacity = l->capacity > 0 ? 2 * l->capacity : 8;
        text_item *moved = arena_allocate(memory, (size_t)capacity * sizeof(*moved));
        if (moved == NULL)
            return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %lld texts",
                               (long long)capacity);
        if (l->count > 0)
            memcpy(moved, l->items, (size_t)l->count * sizeof(*moved));
        l->items = moved;
        l->capacity = capacity;
    }
    l->bytes += item.text.bytes + item.pair.bytes + (size_t)item.id_count * TEXT_ID_BYTES;
    l->items[l->count++] = item;
    return STATUS_OK;
}
