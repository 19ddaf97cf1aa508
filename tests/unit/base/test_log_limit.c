#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/log_limit.h"

#define SECOND UINT64_C(1000000000)

static log_limit limit;

static int take(const char *format, int lines, uint64_t now_ns, uint64_t *withheld)
{
    int taken = 0;
    uint64_t of_line;
    *withheld = 0;
    for (int i = 0; i < lines; i++) {
        if (!log_limit_take(&limit, format, now_ns, &of_line))
            continue;
        *withheld += of_line;
        taken++;
    }
    return taken;
}

Test(log_limit, a_burst_and_then_a_line_at_a_time)
{
    static const char format[] = "%s is late", other[] = "%s is early";
    uint64_t withheld, now_ns = 5 * SECOND;
    cr_expect_eq(take(format, 5000, now_ns, &withheld), LOG_LIMIT_BURST);
    cr_expect_eq(withheld, 0);
    cr_expect_eq(take(format, 10, now_ns + LOG_LIMIT_LINE_NS - 1, &withheld), 0);
    cr_expect_eq(take(format, 10, now_ns + LOG_LIMIT_LINE_NS, &withheld), 1);
    cr_expect_eq(withheld, 4010, "told with the next line");
    cr_expect_eq(take(other, 1, now_ns, &withheld), 1, "each message has its own limit");
    now_ns += LOG_LIMIT_BURST * LOG_LIMIT_LINE_NS * 3;
    cr_expect_eq(take(format, 5000, now_ns, &withheld), LOG_LIMIT_BURST);
    cr_expect_eq(withheld, 9);
}

Test(log_limit, more_messages_than_cells_share_a_limit)
{
    enum { KINDS = LOG_LIMIT_MESSAGES + 100 };
    static char formats[KINDS][8];
    uint64_t withheld;
    int taken = 0;
    for (int i = 0; i < KINDS; i++)
        taken += take(formats[i], 20, SECOND, &withheld);
    cr_expect_eq(taken, (LOG_LIMIT_MESSAGES - 1) * 20 + LOG_LIMIT_BURST,
                 "101 kinds of 20 lines each share the last cell");
}
