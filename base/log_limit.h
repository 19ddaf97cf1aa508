#ifndef BASE_LOG_LIMIT_H
#define BASE_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* How often each message may be logged: LOG_LIMIT_BURST lines at once (a start with many models has
 * many of one kind), later one for each LOG_LIMIT_LINE_NS. So whoever makes the server repeat a
 * message fills no disk. A message is its format's text, wherever it is logged. Pure; the caller
 * locks. */

#define LOG_LIMIT_BURST 1000
#define LOG_LIMIT_LINE_NS UINT64_C(100000000)
#define LOG_LIMIT_MESSAGES 256 /* kinds; more share one limit */

typedef struct log_limit_message {
    const char *format;
    uint64_t full_ns;  /* when the whole burst is there again */
    uint64_t withheld; /* since the last line */
} log_limit_message;

/* Zeroed: nothing was logged. */
typedef struct log_limit {
    log_limit_message messages[LOG_LIMIT_MESSAGES];
} log_limit;

/* Whether that message may be logged at `now_ns`. `*withheld`: how many were not, since the last
 * that was. `format` is a literal. */
bool log_limit_take(log_limit *l, const char *format, uint64_t now_ns, uint64_t *withheld);

#endif
