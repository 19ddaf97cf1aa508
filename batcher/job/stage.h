#ifndef BATCHER_JOB_STAGE_H
#define BATCHER_JOB_STAGE_H

/* The way of a request. One stage = one verb = one source file = one timestamp in the job = one
 * metric label. stage_ns[X] is when stage X ended, so the time of X is stage_ns[X] - stage_ns[X-1].
 */
typedef enum stage {
    STAGE_ACCEPT,  /* server/http/accept.c: the first byte of the request was seen (for HTTP/2: its
                      HEADERS) */
    STAGE_PARSE,   /* server/parse_*.c: body to tensors */
    STAGE_ADMIT,   /* server/http/admit.c: ceilings, quotas; the job is posted */
    STAGE_QUEUE,   /* batcher/queue/queue.c: waiting for a device */
    STAGE_FORM,    /* batcher/execute/form.c: members of a batch chosen and taken */
    STAGE_PAD,     /* batcher/execute/pad.c: copied into the bucket's shape */
    STAGE_PLACE,   /* batcher/execute/place.c: the device and program chosen */
    STAGE_EXECUTE, /* devices/ */
    STAGE_SLICE,   /* batcher/execute/slice.c: outputs copied back to the job */
    STAGE_RESPOND, /* server/http/respond.c: answer written and handed to the connection */
    STAGE_RECORD,  /* server/telemetry/record.c: counted */
    STAGE_COUNT
} stage;

/* "accept" ... "record". Static. */
const char *stage_name(stage s);

#endif
