#ifndef SERVER_BUDGET_REFUSAL_PACE_H
#define SERVER_BUDGET_REFUSAL_PACE_H

#include <stdint.h>

/* When is a connection told that it is refused? At first at once. One that asks again as soon as it
 * is refused, instead of after Retry-After, would keep the loops busy with refusals, and the
 * processor from those who are served: beyond a burst, it hears of so many refusals a second, each
 * at most REFUSAL_DELAY_NS_MAX late. Pure: the caller gives the time. Zeroed: none yet. */
#define REFUSALS_BURST 50
#define REFUSALS_PER_S 50
#define REFUSAL_DELAY_NS_MAX UINT64_C(1000000000)

typedef struct refusal_pace {
    uint64_t owed_ns; /* of refusals, each 1/REFUSALS_PER_S, less the time that went by */
    uint64_t counted_ns;
} refusal_pace;

/* Counts a refusal; returns by how much it is to be late. */
static inline uint64_t refusal_pace_delay_ns(refusal_pace *p, uint64_t now_ns)
{
    const uint64_t each_ns = UINT64_C(1000000000) / REFUSALS_PER_S;
    const uint64_t burst_ns = REFUSALS_BURST * each_ns, most_ns = burst_ns + REFUSAL_DELAY_NS_MAX;
    uint64_t passed_ns = now_ns > p->counted_ns ? now_ns - p->counted_ns : 0;
    p->owed_ns = p->owed_ns > passed_ns ? p->owed_ns - passed_ns : 0;
    p->counted_ns = now_ns;
    p->owed_ns += each_ns;
    if (p->owed_ns > most_ns)
        p->owed_ns = most_ns;
    return p->owed_ns > burst_ns ? p->owed_ns - burst_ns : 0;
}

#endif
