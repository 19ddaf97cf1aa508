#include "models/batching/row_copy.h"

#include <assert.h>
#include <string.h>

static void fill(char *to, size_t count, const void *element, size_t bytes)
{
    static const char zero[sizeof(tensor_string)];
    if (memcmp(element, zero, bytes) == 0) {
        memset(to, 0, count * bytes);
        return;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * bytes, element, bytes);
}

void row_copy(const tensor *to, int64_t to_row, const tensor *from, int64_t from_row,
              const model_tensor *axes, int64_t length, const void *pad)
{
    size_t element = dtype_bytes(to->dtype);
    assert(to->dtype == from->dtype && to->rank == from->rank);
    int first = axes->batch_axis == 0 ? 1 : 0;
    int cut = axes->sequence_axis;
    size_t outer = 1, inner = element, to_tokens = 1, from_tokens = 1, tokens = 1;
    for (int i = first; i < to->rank; i++) {
        if (i == cut) {
            to_tokens = (size_t)to->dims[i];
            from_tokens = (size_t)from->dims[i];
            tokens = (size_t)length;
        } else if (cut >= 0 && i < cut) {
            outer *= (size_t)to->dims[i];
        } else {
            inner *= (size_t)to->dims[i];
        }
    }
    assert(tokens <= to_tokens && tokens <= from_tokens);
    if (first == 0)
        to_row = from_row = 0;
    char *t = (char *)to->data + (size_t)to_row * outer * to_tokens * inner;
    const char *f = (const char *)from->data + (size_t)from_row * outer * from_tokens * inner;
    for (size_t o = 0; o < outer; o++) {
        if (tokens * inner > 0)
            memcpy(t, f, tokens * inner);
        if (pad != NULL && tokens < to_tokens)
            fill(t + tokens * inner, (to_tokens - tokens) * (inner / element), pad, element);
        t += to_tokens * inner;
        f += from_tokens * inner;
    }
}
