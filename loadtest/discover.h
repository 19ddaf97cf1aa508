#ifndef LOADTEST_DISCOVER_H
#define LOADTEST_DISCOVER_H

#include "loadtest/options.h"
#include "loadtest/wire/target.h"
#include "loadtest/workload/metadata.h"

/* What to call and its inputs, from the URL, the options and the server's metadata. */
typedef struct discovery {
    char *path;  /* to send to; owned */
    char *model; /* owned; NULL when the URL is just called */
    const char *method;
    source_format format;
    metadata metadata;
    bool has_metadata;
} discovery;

/* Asks the server where it must. STATUS_NOT_FOUND: no such model, or several to choose from. */
status discover(discovery *d, const options *o, const target *t) MUST_CHECK;
void discovery_dispose(discovery *d);

/* Splits "/v2/models/M[/versions/V]/infer" and "/v1/models/M[/versions/V]:predict". False if `path`
 * is neither. For tests. */
bool discover_path(const char *path, char *model, size_t model_bytes, source_format *format);

#endif
