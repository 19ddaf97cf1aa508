#ifndef BATCHER_PACK_H
#define BATCHER_PACK_H

#include <stdint.h>

/* Several short sequences in one row of a static shape (DESIGN, decision 5): first-fit decreasing,
 * which needs at most 11/9 of the fewest rows, plus 6/9 (Dosa 2007). Pure; allocates nothing. */

#define PACK_SEQUENCES_MAX 1024

typedef struct pack_place {
    int32_t row;     /* -1: did not fit */
    int32_t offset;  /* position in the row where the sequence begins */
    int32_t segment; /* 0, 1, ... within the row: the segment id less one */
} pack_place;

/* Places sequences of `lengths` (each 1 .. row_length; `count` up to PACK_SEQUENCES_MAX) into at
 * most `rows_max` rows of `row_length` positions. Writes `places` in the order of `lengths`; where
 * rows run out, the sequences that come late in the order of `lengths` are left out first, so a
 * caller that sorts by urgency keeps the urgent ones. Returns the rows used. */
int pack_rows(const int64_t *lengths, int count, int64_t row_length, int rows_max,
              pack_place *places);

#endif
