#include "base/histogram.h"

#include <assert.h>

#define CELLS_PER_OCTAVE (1u << HISTOGRAM_CELL_BITS)

static inline void add_u64(_Atomic uint64_t *to, uint64_t value)
{
    /* One writer: a relaxed load and store is an addition without a locked instruction. */
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + value,
                          memory_order_relaxed);
}

static inline void add_u32(_Atomic uint32_t *to, uint32_t value)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + value,
                          memory_order_relaxed);
}

unsigned histogram_cell(uint64_t value)
{
    if (value < CELLS_PER_OCTAVE)
        return (unsigned)value;
    unsigned octave = 63u - (unsigned)__builtin_clzll(value);
    if (octave >= HISTOGRAM_OCTAVE_MAX)
        return HISTOGRAM_CELLS - 1;
    unsigned shift = octave - HISTOGRAM_CELL_BITS;
    return ((shift + 1) << HISTOGRAM_CELL_BITS) + (unsigned)(value >> shift) - CELLS_PER_OCTAVE;
}

uint64_t histogram_cell_low(unsigned cell)
{
    assert(cell < HISTOGRAM_CELLS);
    if (cell < CELLS_PER_OCTAVE)
        return cell;
    unsigned shift = (cell >> HISTOGRAM_CELL_BITS) - 1;
    return (uint64_t)(CELLS_PER_OCTAVE + (cell & (CELLS_PER_OCTAVE - 1))) << shift;
}

static uint64_t cell_middle(unsigned cell)
{
    if (cell < CELLS_PER_OCTAVE)
        return cell;
    unsigned shift = (cell >> HISTOGRAM_CELL_BITS) - 1;
    return histogram_cell_low(cell) + ((uint64_t)1 << shift) / 2;
}

void histogram_reset(histogram *h)
{
    atomic_store_explicit(&h->count, 0, memory_order_relaxed);
    atomic_store_explicit(&h->sum, 0, memory_order_relaxed);
    atomic_store_explicit(&h->max, 0, memory_order_relaxed);
    for (unsigned i = 0; i < HISTOGRAM_CELLS; i++)
        atomic_store_explicit(&h->cells[i], 0, memory_order_relaxed);
}

void histogram_record(histogram *h, uint64_t value)
{
    add_u32(&h->cells[histogram_cell(value)], 1);
    add_u64(&h->sum, value);
    if (value > atomic_load_explicit(&h->max, memory_order_relaxed))
        atomic_store_explicit(&h->max, value, memory_order_relaxed);
    add_u64(&h->count, 1);
}

void histogram_merge(histogram *into, const histogram *from)
{
    for (unsigned i = 0; i < HISTOGRAM_CELLS; i++) {
        uint32_t n = atomic_load_explicit(&from->cells[i], memory_order_relaxed);
        if (n != 0)
            add_u32(&into->cells[i], n);
    }
    add_u64(&into->sum, atomic_load_explicit(&from->sum, memory_order_relaxed));
    add_u64(&into->count, atomic_load_explicit(&from->count, memory_order_relaxed));
    uint64_t max = atomic_load_explicit(&from->max, memory_order_relaxed);
    if (max > atomic_load_explicit(&into->max, memory_order_relaxed))
        atomic_store_explicit(&into->max, max, memory_order_relaxed);
}

uint64_t histogram_quantile(const histogram *h, double q)
{
    assert(q >= 0 && q <= 1);
    /* Counted from the cells, not `count`: a writer may be between the two. */
    uint64_t total = 0;
    for (unsigned i = 0; i < HISTOGRAM_CELLS; i++)
        total += atomic_load_explicit(&h->cells[i], memory_order_relaxed);
    if (total == 0)
        return 0;
    double exact = q * (double)total;
    uint64_t rank = (uint64_t)exact;
    if ((double)rank < exact || rank == 0)
        rank++;
    uint64_t seen = 0, max = atomic_load_explicit(&h->max, memory_order_relaxed);
    for (unsigned i = 0; i < HISTOGRAM_CELLS; i++) {
        seen += atomic_load_explicit(&h->cells[i], memory_order_relaxed);
        if (seen >= rank) {
            uint64_t value = cell_middle(i);
            return i == HISTOGRAM_CELLS - 1 || value > max ? max : value;
        }
    }
    return max;
}

uint64_t histogram_count_at_most(const histogram *h, uint64_t value)
{
    uint64_t count = 0;
    for (unsigned i = 0, last = histogram_cell(value); i <= last; i++)
        count += atomic_load_explicit(&h->cells[i], memory_order_relaxed);
    return count;
}
