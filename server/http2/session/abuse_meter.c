#include "server/http2/session/abuse_meter.h"

void abuse_meter_init(abuse_meter *m, uint32_t capacity, uint32_t leak_per_s, uint64_t now_ns)
{
    *m = (abuse_meter){.capacity = capacity, .leak_per_s = leak_per_s, .updated_ns = now_ns};
}

/* Whole points only; the rest of the time stays in updated_ns, so that nothing is lost to rounding
 * however often this is called. */
static void leak(abuse_meter *m, uint64_t now_ns)
{
    uint64_t elapsed_ns = now_ns > m->updated_ns ? now_ns - m->updated_ns : 0;
    uint64_t nanoseconds_per_point = m->leak_per_s ? UINT64_C(1000000000) / m->leak_per_s : 0;
    if (m->level == 0 || nanoseconds_per_point == 0) {
        m->updated_ns = now_ns;
        return;
    }
    uint64_t points = elapsed_ns / nanoseconds_per_point;
    if (points >= m->level) {
        m->level = 0;
        m->updated_ns = now_ns;
        return;
    }
    m->level -= (uint32_t)points;
    m->updated_ns += points * nanoseconds_per_point;
}

bool abuse_meter_add(abuse_meter *m, uint32_t points, uint64_t now_ns)
{
    leak(m, now_ns);
    m->level = points > UINT32_MAX - m->level ? UINT32_MAX : m->level + points;
    return m->level <= m->capacity;
}

void abuse_meter_credit(abuse_meter *m, uint32_t points)
{
    m->level = points >= m->level ? 0 : m->level - points;
}
