#ifndef SERVER_BUDGET_RATE_WINDOW_H
#define SERVER_BUDGET_RATE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* Is a transfer too slow? Time is cut into windows, and in each of them a lowest rate must hold: a
 * peer that was fast before cannot save up for slowness, and one that moves a byte now and then
 * does not escape. Pure: the caller gives the time. Zeroed: no window has begun. */
typedef struct rate_window {
    uint64_t begun_ns; /* 0: not begun */
    uint64_t bytes;    /* moved before it began */
} rate_window;

typedef struct rate_limit {
    uint64_t window_ns;
    uint64_t bytes_per_s_min; /* 0: any byte will do */
} rate_limit;

/* `bytes` have moved so far. True: a window has ended in which less than the lowest rate moved, or
 * nothing. The first call begins a window. */
static inline bool rate_window_is_slow(rate_window *w, uint64_t bytes, uint64_t now_ns,
                                       const rate_limit *limit)
{
    if (w->begun_ns != 0 && now_ns - w->begun_ns < limit->window_ns)
        return false;
    uint64_t moved = bytes - w->bytes, span_ns = now_ns - w->begun_ns;
    bool is_slow =
        w->begun_ns != 0 &&
        ((double)moved * 1e9 < (double)limit->bytes_per_s_min * (double)span_ns || moved == 0);
    *w = (rate_window){now_ns, bytes};
    return is_slow;
}

/* Nothing waits for the peer now. */
static inline void rate_window_end(rate_window *w)
{
    w->begun_ns = 0;
}

#endif
