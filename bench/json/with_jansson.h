#ifndef BENCH_JSON_WITH_JANSSON_H
#define BENCH_JSON_WITH_JANSSON_H

#include <stddef.h>

/* A JSON array of reals into `out`, by way of jansson's tree. */
void with_jansson(const char *text, size_t bytes, float *out);

#endif
