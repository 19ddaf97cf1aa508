#include "batcher/policy/pack.h"

#include <assert.h>

void pack_open(pack *p, int64_t row_length, int rows_max, int sequences_max)
{
    assert(row_length > 0 && rows_max >= 0 && sequences_max >= 0);
    p->row_length = row_length;
    p->rows_max = rows_max < PACK_ROWS_MAX ? rows_max : PACK_ROWS_MAX;
    p->sequences_max = sequences_max < PACK_SEQUENCES_MAX ? sequences_max : PACK_SEQUENCES_MAX;
    p->rows = p->count = 0;
}

bool pack_add(pack *p, int64_t length, pack_place *place)
{
    assert(length > 0);
    if (p->count == p->sequences_max || length > p->row_length)
        return false;
    int best = -1;
    for (int i = 0; i < p->rows; i++)
        if (p->used[i] + length <= p->row_length && (best < 0 || p->used[i] > p->used[best]))
            best = i;
    if (best < 0) {
        if (p->rows == p->rows_max)
            return false;
        best = p->rows++;
        p->used[best] = 0;
    }
    *place = (pack_place){.row = best, .offset = (int32_t)p->used[best]};
    p->used[best] += length;
    p->count++;
    return true;
}
