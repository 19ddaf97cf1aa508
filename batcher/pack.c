#include "batcher/pack.h"

#include <assert.h>

/* Of equal lengths the earlier one first: the order is total, so the answer is one. */
static int is_before(const int64_t *lengths, int a, int b)
{
    return lengths[a] > lengths[b] || (lengths[a] == lengths[b] && a < b);
}

static void sort(const int64_t *lengths, int *order, int count)
{
    static const int gaps[] = {301, 132, 57, 23, 10, 4, 1}; /* Ciura 2001 */
    for (int g = 0; g < (int)(sizeof gaps / sizeof *gaps); g++)
        for (int i = gaps[g]; i < count; i++) {
            int moved = order[i], k = i;
            for (; k >= gaps[g] && is_before(lengths, moved, order[k - gaps[g]]); k -= gaps[g])
                order[k] = order[k - gaps[g]];
            order[k] = moved;
        }
}

/* Rows that the first `count` sequences need; `places` of those that found no row: -1. */
static int fit(const int64_t *lengths, int count, int64_t row_length, int rows_max,
               pack_place *places)
{
    int order[PACK_SEQUENCES_MAX];
    int64_t used[PACK_SEQUENCES_MAX];
    int32_t segments[PACK_SEQUENCES_MAX];
    int rows = 0;
    for (int i = 0; i < count; i++)
        order[i] = i;
    sort(lengths, order, count);
    for (int i = 0; i < count; i++) {
        int item = order[i], row = 0;
        assert(lengths[item] > 0 && lengths[item] <= row_length);
        while (row < rows && used[row] + lengths[item] > row_length)
            row++;
        if (row == rows_max) {
            places[item] = (pack_place){.row = -1};
            continue;
        }
        if (row == rows) {
            used[rows] = 0;
            segments[rows++] = 0;
        }
        places[item] =
            (pack_place){.row = row, .offset = (int32_t)used[row], .segment = segments[row]++};
        used[row] += lengths[item];
    }
    return rows;
}

int pack_rows(const int64_t *lengths, int count, int64_t row_length, int rows_max,
              pack_place *places)
{
    assert(count >= 0 && count <= PACK_SEQUENCES_MAX && rows_max >= 0);
    /* What the rows surely cannot hold is left out before sorting, or long late ones would drive
     * out short early ones. */
    int64_t room = row_length * rows_max, tokens = 0;
    int taken = 0;
    while (taken < count && tokens + lengths[taken] <= room)
        tokens += lengths[taken++];
    for (int i = taken; i < count; i++)
        places[i] = (pack_place){.row = -1};
    /* Then the last ones, until all that remain have a row: halving keeps it cheap. */
    int works = 0, fails = taken + 1;
    while (fails - works > 1) {
        int middle = fails == taken + 1 ? taken : works + (fails - works) / 2;
        int rows = fit(lengths, middle, row_length, rows_max, places);
        int missing = 0;
        for (int i = 0; i < middle && rows == rows_max; i++)
            missing += places[i].row < 0;
        if (missing == 0)
            works = middle;
        else
            fails = middle;
    }
    int rows = fit(lengths, works, row_length, rows_max, places);
    for (int i = works; i < taken; i++)
        places[i] = (pack_place){.row = -1};
    return rows;
}
