#ifndef SERVER_PROTOCOL_INFER_H
#define SERVER_PROTOCOL_INFER_H

#include "base/cancel.h"
#include "batcher/job/job.h"
#include "server/options/options.h"
#include "server/protocol/text/json_scan.h"
#include "server/protocol/text/text_item.h"

/* A parsed inference request, whatever its protocol: data without a life of its own. The parsers
 * fill it, write_infer.h writes its response. */

typedef enum infer_protocol {
    INFER_KSERVE,
    INFER_TENSORFLOW_ROWS,    /* "instances" -> "predictions" */
    INFER_TENSORFLOW_COLUMNS, /* "inputs" -> "outputs" */
    INFER_LANGUAGE,           /* the routes that take text (language/language.h) */
    INFER_GRPC,               /* grpc/infer_message.h */
    INFER_GRPC_TENSORFLOW     /* grpc/predict_message.h */
} infer_protocol;

static inline bool infer_is_grpc(infer_protocol protocol)
{
    return protocol == INFER_GRPC || protocol == INFER_GRPC_TENSORFLOW;
}

/* A part of a region of memory that a client shares: a tensor lies there in its binary form. */
typedef struct infer_region {
    json_string name; /* bytes 0: there is none */
    uint64_t offset, bytes;
} infer_region;

/* What reads them, on any thread. STATUS_INVALID_ARGUMENT: no such region, or the bytes do not lie
 * in it. */
typedef struct infer_regions {
    status (*check)(const struct infer_regions *r, const infer_region *region);
    status (*read)(const struct infer_regions *r, const infer_region *region, void *to);
} infer_regions;

/* Of TensorFlow's row form: {"predictions": [...]}, or a line for each row. */
typedef enum infer_rows_as { INFER_ROWS_JSON, INFER_ROWS_LINES, INFER_ROWS_CSV } infer_rows_as;

typedef struct infer_output {
    int index; /* of the model's outputs */
    bool is_binary;
    infer_region
        region; /* where it goes, instead of into the response; the name is kept by jobs[0] */
} infer_output;

/* Where a row of a TensorFlow request went: rows of equal length share a job. */
typedef struct infer_row {
    int32_t job;
    int64_t row;
} infer_row;

typedef struct infer_request {
    const model *model;
    infer_protocol protocol;
    json_string id; /* bytes 0 and text NULL: absent */
    infer_output outputs[MODEL_TENSORS_MAX];
    int output_count;
    uint64_t timeout_ns; /* 0: none named */
    int priority;
    job **jobs; /* room for `job_capacity`, owned by the caller */
    int job_count, job_capacity;
    infer_row *rows; /* NULL when there is one job with the rows in order; held by jobs[0] */
    int64_t row_count;
    infer_rows_as rows_as; /* in the response */
    /* Texts that become rows when they are tokens (text_rows.h); the strings lie in the body or
     * with jobs[0]. `language` has its own. */
    text_list texts;
    text_options text_options;
    struct language_request *language; /* INFER_LANGUAGE; borrowed */
    bool borrows_body; /* a tensor's data lies in the body: keep it until the jobs are back */
} infer_request;

/* What parsing needs beside the body. */
typedef struct infer_context {
    const server_limits *limits;
    bool is_strict;  /* no NaN */
    bool can_borrow; /* the body stays where it is until the jobs are back */
    /* Returns a job with its model, rows and length -1 and empty memory; NULL: there is none. It is
     * among request->jobs afterwards, after a failure too. */
    job *(*acquire_job)(void *context);
    void *context;
    struct infer_scratch *scratch; /* the thread's own */
    const infer_regions *regions;  /* NULL: the client may not use any, or there are none */
    const cancel_token *cancel;    /* asked now and then; NULL: nobody cancels */
} infer_context;

/* Growing buffers for rows of unknown count, kept by the thread between requests. Zeroed is empty.
 */
typedef struct infer_scratch {
    void *data[MODEL_TENSORS_MAX];
    size_t bytes[MODEL_TENSORS_MAX];
    void *rows;
    size_t rows_bytes;
} infer_scratch;
void infer_scratch_dispose(infer_scratch *s);

void infer_request_init(infer_request *r, const model *m, infer_protocol protocol, job **jobs,
                        int job_capacity);

/* POST .../infer. `json_bytes` of the body are JSON, the rest binary tensors. */
status parse_kserve(infer_request *r, const infer_context *c, const char *body, size_t bytes,
                    size_t json_bytes) MUST_CHECK;
/* Inference-Header-Content-Length: 0: the body is the one input, batch 1 (parse_binary.c). */
status parse_kserve_raw(infer_request *r, const infer_context *c, const char *body,
                        size_t bytes) MUST_CHECK;
/* POST ...:predict. */
status parse_tensorflow(infer_request *r, const infer_context *c, const char *body,
                        size_t bytes) MUST_CHECK;

/* Sets the data of `t`, whose shape is set, from the elements of the binary tensor extension at
 * `from`; `bytes` must be exactly theirs. Data is copied into `memory` unless it may be borrowed.
 */
status parse_binary_tensor(tensor *t, arena *memory, const char *from, size_t bytes,
                           bool can_borrow, bool *is_borrowed) MUST_CHECK;

/* The outputs that the request names, one after another: adds the one of that name.
 * STATUS_INVALID_ARGUMENT: there is none, or it came before. */
status infer_add_output(infer_request *r, json_string name) MUST_CHECK;
/* Where the one that was added last goes; `region` has been read. Keeps the name in `memory`. */
status infer_set_region(infer_request *r, const infer_context *c, const infer_region *region,
                        arena *memory) MUST_CHECK;
/* Is it complete, or absent? STATUS_INVALID_ARGUMENT: its name is missing, or the bytes. */
status infer_check_region(const infer_region *region) MUST_CHECK;
/* What is said of a region without infer_context.regions. */
status infer_fail_region(const infer_region *region) MUST_CHECK;
/* Is it one of the parameters shared_memory_region, _offset, _byte_size? */
bool infer_is_region_key(json_string key);

/* Index of that input or output, or -1. */
int infer_find_input(const model *m, json_string name);
int infer_find_output(const model *m, json_string name);

/* Does shape `t` suit input `index`? Sets or compares j->rows and j->length (-1: not known yet). */
status infer_check_input(const model *m, int index, const tensor *t, job *j) MUST_CHECK;

/* Texts stand for all the inputs: is none given, and are the texts as they should be? */
status infer_check_texts(infer_request *r, const bool *is_given) MUST_CHECK;

/* Are so many rows of that length (-1: not known yet) within the model's ceilings, and their
 * outputs within `limits`? As soon as they are known, before memory is allocated for them.
 * STATUS_TOO_LARGE, STATUS_INVALID_ARGUMENT. */
status infer_check_size(const model *m, int64_t rows, int64_t length,
                        const server_limits *limits) MUST_CHECK;

/* The same of outputs that are there, where the model's own shapes did not tell. */
status infer_check_outputs(const model *m, const tensor *outputs,
                           const server_limits *limits) MUST_CHECK;

/* After all inputs: `is_given` says which were in the request; fills optional ones, checks the
 * size, and allocates the outputs. */
status infer_finish_job(const model *m, job *j, const bool *is_given,
                        const server_limits *limits) MUST_CHECK;

/* "[batch,sequence,3]": what the model declares; returns `text`. */
const char *infer_dims_text(char text[TENSOR_SHAPE_TEXT_BYTES], const model_tensor *t);

#endif
