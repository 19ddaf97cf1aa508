#ifndef SERVER_TELEMETRY_RECORD_H
#define SERVER_TELEMETRY_RECORD_H

#include "base/histogram.h"
#include "base/text/text_buffer.h"
#include "batcher/job/job.h"
#include "server/protocol/route.h"

/* Counts what happened: per model, and inside it per loop, so that each histogram has one writer.
 * Readers merge. A model's record is found by name and version and never freed, so counters go on
 * over reloads. */

#define RECORD_STAGE_TOTAL STAGE_COUNT /* from the first byte to the end of stage respond */
#define RECORD_SERIES (STAGE_COUNT + 1)
#define RECORD_WINDOW_SLOTS 7 /* six whole ones make the minute, one is being filled */
#define RECORD_SLOT_NS 10000000000ull
#define RECORD_CODES 20
/* APIs; the last: requests that ended before it was known which. */
#define RECORD_PROTOCOLS (ROUTE_DIALECT_COUNT + 1)
/* Of a bucket: queue, execute, total. */
#define RECORD_BUCKET_SERIES 3
#define RECORD_BUCKET_EXECUTE 1
#define RECORD_BATCH_SIZES 256 /* batches of 1, 2 ... rows; the last: and of more */
#define RECORD_SHARE (1 << 20)
#define RECORD_BATCH_CELLS 12 /* batches of at most 1, 2, 4 ... 1024, more */

typedef struct recorder recorder;
typedef struct model_record model_record;

/* Why a request was not served. */
typedef enum record_reason {
    RECORD_SERVED, /* or: what its code says */
    RECORD_BAD_REQUEST,
    RECORD_UNAUTHORIZED, /* no key, a wrong one, or one without that right */
    RECORD_NOT_FOUND,
    RECORD_TOO_LARGE,
    RECORD_TOO_SLOW, /* it did not arrive in time */
    RECORD_QUEUE_FULL,
    RECORD_QUOTA,
    RECORD_CONNECTION_LIMIT,   /* of requests in progress */
    RECORD_DEADLINE_ADMISSION, /* its deadline could not be met, or passed before it was queued */
    RECORD_DEADLINE_QUEUE,     /* its deadline passed after it was admitted */
    RECORD_CLIENT_GONE,
    RECORD_NOT_READY,   /* the server starts or ends, or the model is not loaded */
    RECORD_OVERLOADED,  /* no memory or no room for what it needs */
    RECORD_DEVICE_LOST, /* no device could run it */
    RECORD_INTERNAL,
    RECORD_REASONS
} record_reason;

typedef struct record_shape {
    device_bucket size;
    bool is_packed; /* its rows hold several sequences each */
} record_shape;

typedef struct record_sample {
    uint64_t begin_ns;
    uint64_t stage_ns[STAGE_COUNT]; /* 0 where a stage was not reached */
    int code;
    record_reason reason; /* RECORD_SERVED: follows from the code and the stages */
    int protocol;         /* route_dialect, or RECORD_PROTOCOLS - 1 */
    int64_t rows, batch_rows;
    int64_t tokens; /* of these rows; 0: the model has no sequence axis */
    record_shape bucket;
    int bucket_index; /* in the model's list, or -1 */
    bool fell_back;
} record_sample;

/* NULL: memory is out. */
recorder *recorder_create(int loops);
/* NULL is nothing. */
void recorder_destroy(recorder *r);

/* The record of a model that the caller holds a reference to; made at its first use. Any thread;
 * takes a lock at the first use of a loaded version only. */
model_record *record_of_model(recorder *r, const model *m);

/* Counts a request that ended at `now_ns`, and stamps stage record of the sample when that is done.
 * By loop `loop`'s thread only. `m` may be NULL: a request that reached no model. */
void record_request(recorder *r, model_record *m, int loop, record_sample *sample, uint64_t now_ns);

/* The same of a request that was refused before it was read whole, and reached no model. */
void record_refused(recorder *r, int loop, int code, record_reason reason, int protocol,
                    uint64_t now_ns);

/* Reading, any thread. */
typedef struct record_totals {
    uint64_t codes[RECORD_PROTOCOLS][RECORD_CODES], reasons[RECORD_PROTOCOLS][RECORD_REASONS];
    uint64_t batch_rows; /* over successful requests: rows of the batch each was in */
    uint64_t rows, fallbacks, success_count, success_ns, failure_count, failure_ns;
    uint64_t stage_count[RECORD_SERIES], stage_sum_ns[RECORD_SERIES];
    uint64_t batch_cells[RECORD_BATCH_CELLS];
    uint64_t last_ns; /* of the latest request, clock_now_ns() scale */
} record_totals;
void record_read_totals(const recorder *r, const model_record *m, record_totals *out);
/* One series merged over loops; `is_window`: the last minute only. `out` is overwritten. */
void record_read(const recorder *r, const model_record *m, int series, bool is_window,
                 uint64_t now_ns, histogram *out);
/* The same of one bucket, series 0 to RECORD_BUCKET_SERIES; false when it has served nothing. */
bool record_read_bucket(const recorder *r, const model_record *m, int bucket_index, int series,
                        bool is_window, uint64_t now_ns, histogram *out, record_shape *bucket);

/* What batches of `rows` rows (1 to RECORD_BATCH_SIZES) took: each successful request adds
 * its share of its batch. False: there were none. */
typedef struct record_batches {
    uint64_t count, input_ns, infer_ns, output_ns;
} record_batches;
bool record_read_size(const recorder *r, const model_record *m, int rows, record_batches *out);

/* Models in order of first use; NULL ends. The first is for requests without a model (name ""). */
const model_record *record_first(const recorder *r);
const model_record *record_next(const model_record *m);
const char *record_name(const model_record *m);
int64_t record_version(const model_record *m);
/* "kserve" ..., "unknown"; "bad_request" ... Static. */
const char *record_protocol_name(int protocol);
const char *record_reason_name(record_reason reason);
/* Why the request of that sample was not served; RECORD_SERVED: it was. `has_model`: it reached
 * one. */
record_reason record_reason_of(const record_sample *s, bool has_model);
/* The HTTP code a cell of `codes` counts; 0 for "others". */
int record_code(int cell);
const char *record_series_name(int series);
const char *record_bucket_series_name(int series);

#endif
