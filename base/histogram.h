#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

/* Log-linear histogram of non-negative values, in practice nanoseconds. Each octave is cut into 64
 * equal cells, so a reported quantile is within 0.8% of a recorded value. Values from
 * 2^HISTOGRAM_OCTAVE_MAX (137 s in ns) count in the last cell. One writing thread; any thread may
 * read meanwhile (cells are relaxed atomics): a reader may miss the newest counts, but never sees a
 * torn one. Layout: HdrHistogram, with a power of two of cells per octave. */
#define HISTOGRAM_CELL_BITS 6
#define HISTOGRAM_OCTAVE_MAX 37
#define HISTOGRAM_CELLS ((HISTOGRAM_OCTAVE_MAX - HISTOGRAM_CELL_BITS + 1) << HISTOGRAM_CELL_BITS)

typedef struct histogram {
    _Atomic uint64_t count, sum, max;
    _Atomic uint32_t cells[HISTOGRAM_CELLS];
} histogram;

/* A zeroed histogram is empty. */
void histogram_reset(histogram *h);
void histogram_record(histogram *h, uint64_t value);
/* Adds `from` to `into`; the caller owns `into`, `from` may have a live writer. */
void histogram_merge(histogram *into, const histogram *from);

/* The smallest value v such that a fraction `q` (0 to 1) of the recorded values are at most v; 0
 * when empty. v is the middle of its cell, and never above the largest value recorded. */
uint64_t histogram_quantile(const histogram *h, double q);

/* How many recorded values are at most `value`, to the precision of a cell. */
uint64_t histogram_count_at_most(const histogram *h, uint64_t value);

/* The cell of a value, and a cell's lowest value: for exchange formats that list cells. */
unsigned histogram_cell(uint64_t value);
uint64_t histogram_cell_low(unsigned cell);

#endif
