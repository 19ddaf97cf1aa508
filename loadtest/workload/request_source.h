#ifndef LOADTEST_WORKLOAD_REQUEST_SOURCE_H
#define LOADTEST_WORKLOAD_REQUEST_SOURCE_H

#include "base/text/text_buffer.h"
#include "loadtest/wire/request.h"
#include "loadtest/workload/metadata.h"
#include "loadtest/workload/quantity.h"
#include "loadtest/workload/trace.h"

/* The pool of request bodies, all made before the run, so that sending is a copy. */
typedef enum source_format {
    SOURCE_KSERVE,        /* JSON of the Open Inference Protocol */
    SOURCE_KSERVE_BINARY, /* the same with binary tensors both ways */
    SOURCE_TENSORFLOW,    /* TensorFlow Serving's "instances" */
    SOURCE_OPENAI,        /* POST /v1/embeddings; texts only */
    SOURCE_TEI,           /* POST /embed of text-embeddings-inference; texts only */
    SOURCE_RAW            /* lines of a file as they are */
} source_format;

typedef struct source_options {
    source_format format;
    const char *data_file; /* JSON lines, each a whole body; or NULL */
    const char *ids_file;  /* token ids, a line per request: "[1,2]" or "1 2"; or NULL */
    const char *text_file; /* texts, a line per request; or NULL */
    const char *model;     /* for bodies that name it */
    const trace *trace;    /* or NULL */
    const length_spec *lengths;
    uint32_t rows;       /* per request */
    uint32_t vocabulary; /* generated ids are below it */
    uint32_t pool;       /* how many different bodies to make; 0: 512, fewer of large ones */
    size_t bytes_max;    /* of all bodies together, each held twice; 0: 1 GiB */
    uint64_t seed;
    bool shuffle; /* bodies of files in random order, else as they come */
} source_options;

typedef struct request_source {
    payload *payloads; /* `count`, each with its own texts (owned) */
    size_t count;
    /* For a trace: payloads[i] is sent at the i-th time; else they are cycled through. */
    bool one_to_one;
    double mean_tokens;
    double mean_bytes;
} request_source;

/* `m` may be NULL where every body comes from a file. `head` gives the head of HTTP/1.1 requests.
 * STATUS_INVALID_ARGUMENT, STATUS_NOT_FOUND, STATUS_UNSUPPORTED; STATUS_TOO_LARGE: the bodies
 * together hold over `bytes_max`. */
status request_source_create(request_source *s, const source_options *o, const metadata *m,
                             const request_head *head) MUST_CHECK;
void request_source_dispose(request_source *s);

/* One payload; both its texts are owned by the caller (free). */
void request_source_payload(payload *p, const char *body, size_t body_bytes,
                            uint64_t header_json_bytes, const request_head *head);

/* For tests: the body of one request, for `length` tokens; `ids` may be NULL. */
status request_source_write(text_buffer *body, uint64_t *header_json_bytes, const source_options *o,
                            const metadata *m, uint32_t length, const int64_t *ids,
                            random_state *r) MUST_CHECK;

#endif
