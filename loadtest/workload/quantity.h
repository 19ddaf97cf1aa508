#ifndef LOADTEST_WORKLOAD_QUANTITY_H
#define LOADTEST_WORKLOAD_QUANTITY_H

#include "base/status.h"
#include "loadtest/workload/random.h"

#include <stddef.h>
#include <stdint.h>

/* Durations and length distributions of the command line. */

#define DURATION_S_MAX (366 * 86400.0)

/* "50ms", "1.5s", "200us", "2m", "1h"; a bare number is seconds; DURATION_S_MAX at most.
 * STATUS_INVALID_ARGUMENT leaves `ns` untouched. */
status quantity_duration(const char *text, uint64_t *ns) MUST_CHECK;

/* A distribution of request lengths, in tokens. */
typedef struct length_spec {
    enum { LENGTH_FIXED, LENGTH_UNIFORM, LENGTH_LOGNORMAL, LENGTH_LIST } kind;
    double a, b;
    uint32_t max;   /* draws above it are cut to it; LENGTH_MAX_DEFAULT unless set */
    uint32_t *list; /* owned */
    size_t list_count;
} length_spec;

#define LENGTH_MAX_DEFAULT 512
#define LENGTH_MAX 1000000 /* tokens of a request, wherever the number comes from */

/* "40", "uniform:5:60", "lognormal:MEDIAN:SIGMA" (sigma of the logarithm) or "file:PATH", one
 * length a line, drawn from with replacement. ":max=N" may follow the first three. */
status length_parse(length_spec *spec, const char *text) MUST_CHECK;
void length_dispose(length_spec *spec);
/* At least 1. */
uint32_t length_draw(const length_spec *spec, random_state *r);

/* The whole file, with a zero byte after it; "-" is standard input. Freed with free(). */
status quantity_read_file(const char *path, char **text, size_t *bytes) MUST_CHECK;

#endif
