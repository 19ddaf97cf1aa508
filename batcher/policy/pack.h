#ifndef BATCHER_POLICY_PACK_H
#define BATCHER_POLICY_PACK_H

#include <stdbool.h>
#include <stdint.h>

/* Several sequences in one row of a static shape (DESIGN, decision 5): each goes to the fullest row
 * that still holds it (best fit). Sequences that come with the long ones first, as dispatch.c sends
 * them, need at most 11/9 of the fewest rows (best-fit decreasing; Johnson et al. 1974). Pure;
 * allocates nothing. */

#define PACK_ROWS_MAX 1024
#define PACK_SEQUENCES_MAX 1024

typedef struct pack_place {
    int32_t row, offset; /* where the sequence begins */
} pack_place;

typedef struct pack {
    int64_t row_length;
    int rows_max, sequences_max;
    int rows, count; /* opened; placed */
    int64_t used[PACK_ROWS_MAX];
} pack;

/* Empty rows of `row_length` positions. At most PACK_ROWS_MAX rows and PACK_SEQUENCES_MAX
 * sequences. */
void pack_open(pack *p, int64_t row_length, int rows_max, int sequences_max);
/* Places a sequence of `length` (at least 1). False: there is no room for it; a shorter one may
 * still fit. Costs a look at each row. */
bool pack_add(pack *p, int64_t length, pack_place *place);

#endif
