#include "devices/cpu/dynamic/item.h"

#include <stdlib.h>

#define BUFFER_HEAD_BYTES 64 /* before the data, which is aligned likewise */

status item_allocate(item_memory *m, const tensor *shape, item *out)
{
    size_t bytes = BUFFER_HEAD_BYTES + ((tensor_bytes(shape) + 63) & ~(size_t)63);
    item_buffer *buffer = aligned_alloc(64, bytes);
    if (!buffer)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a tensor of %zu bytes", bytes);
    *buffer = (item_buffer){1, bytes, m};
    m->bytes += (int64_t)bytes;
    *out = (item){.kind = ITEM_TENSOR, .tensor = *shape, .buffer = buffer};
    out->tensor.data = (char *)buffer + BUFFER_HEAD_BYTES;
    return STATUS_OK;
}

status item_allocate_sequence(int64_t count, item *out)
{
    item_sequence *s = calloc(1, sizeof *s + (size_t)count * sizeof s->items[0]);
    if (!s)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a sequence");
    s->references = 1;
    s->count = count;
    *out = (item){.kind = ITEM_SEQUENCE, .sequence = s};
    return STATUS_OK;
}

item item_borrow(const tensor *t)
{
    return (item){.kind = ITEM_TENSOR, .tensor = *t};
}

item item_retain(const item *from)
{
    if (from->buffer)
        from->buffer->references++;
    if (from->sequence)
        from->sequence->references++;
    return *from;
}

void item_release(item *i)
{
    if (i->buffer && --i->buffer->references == 0) {
        i->buffer->memory->bytes -= (int64_t)i->buffer->bytes;
        free(i->buffer);
    }
    if (i->sequence && --i->sequence->references == 0) {
        for (int64_t k = 0; k < i->sequence->count; k++)
            item_release(&i->sequence->items[k]);
        free(i->sequence);
    }
    *i = (item){0};
}
