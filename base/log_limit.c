#include "base/log_limit.h"

#include <stddef.h>

#define BURST_NS (LOG_LIMIT_BURST * LOG_LIMIT_LINE_NS)

/* Its own cell, by linear probing; the last one is for all that find none. */
static log_limit_message *find(log_limit *l, const char *format)
{
    size_t at = (size_t)((uintptr_t)format * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    for (size_t i = 0; i + 1 < LOG_LIMIT_MESSAGES; i++) {
        log_limit_message *m = &l->messages[(at + i) % (LOG_LIMIT_MESSAGES - 1)];
        if (m->format == NULL)
            m->format = format;
        if (m->format == format)
            return m;
    }
    return &l->messages[LOG_LIMIT_MESSAGES - 1];
}

bool log_limit_take(log_limit *l, const char *format, uint64_t now_ns, uint64_t *withheld)
{
    log_limit_message *m = find(l, format);
    uint64_t full_ns = m->full_ns > now_ns ? m->full_ns : now_ns;
    if (full_ns + LOG_LIMIT_LINE_NS > now_ns + BURST_NS) {
        m->withheld++;
        return false;
    }
    m->full_ns = full_ns + LOG_LIMIT_LINE_NS;
    *withheld = m->withheld;
    m->withheld = 0;
    return true;
}
