#ifndef BATCHER_POLICY_PACK_H
#define BATCHER_POLICY_PACK_H

#include <stdbool.h>
#include <stdint.h>

/* Finds places for several sequences in each row of a static shape: each sequence goes to the
 * fullest row that still holds it (best fit). When the long ones come first, as dispatch.c sends
 * them, it needs at most 11/9 of the fewest rows possible (best-fit decreasing; Johnson et al.
 * 1974). Pure; allocates nothing. */

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

/* Empty rows of `row_length` tokens. At most PACK_ROWS_MAX rows and PACK_SEQUENCES_MAX
 * sequences. */
void pack_open(pack *p, int64_t row_length, int rows_max, int sequences_max);
/* Places a sequence of `length` (at least 1). False: there is no room for it; a shorter one may
 * still fit. Looks at each row once. */
bool pack_add(pack *p, int64_t length, pack_place *place);

#endif
