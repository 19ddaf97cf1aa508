#ifndef BATCHER_JOB_STAGE_H
#define BATCHER_JOB_STAGE_H

#include <assert.h>
#include <stdint.h>

/* The stages of a request, in order. One stage = one verb = one source file = one stamp = one
 * metric label. stage_ns[X] is when stage X ended, so X took stage_ns[X] - stage_ns[X - 1]. Times
 * are clock_now_ns(); 0: the stage was not reached. */
typedef enum stage {
    /* The request arrived, from its first byte (HTTP/2: its HEADERS) to its last: begin_ns is when
     * that was. server/connection/accept.c */
    STAGE_ACCEPT,
    /* The body became tensors, in jobs, or texts. server/infer/parse.c */
    STAGE_PARSE,
    /* Texts became tokens, in jobs; no time where there are none. server/infer/tokenize.c */
    STAGE_TOKENIZE,
    /* Ceilings and quotas were checked, and whether the deadline can be met; the jobs hold their
     * places in the queue. server/infer/admit.c */
    STAGE_ADMIT,
    /* The rows waited until a free worker took them into a batch. batcher/queue/queue.c */
    STAGE_QUEUE,
    /* The batch was decided and its members described. batcher/execute/form.c */
    STAGE_FORM,
    /* The members' rows were copied into tensors of the bucket's shape; no time where the program
     * reads the members' own tensors. batcher/execute/pad.c */
    STAGE_PAD,
    /* The batch, whose device and program are known, got one of the device's execution slots.
     * batcher/execute/place.c */
    STAGE_PLACE,
    /* The device computed. batcher/execute/execute.c */
    STAGE_EXECUTE,
    /* The outputs were copied back into the jobs. batcher/execute/slice.c */
    STAGE_SLICE,
    /* The response was written and handed to the connection. server/request/respond.c */
    STAGE_RESPOND,
    /* The request was counted in the histograms, this stage last. server/telemetry/record.c */
    STAGE_RECORD,
    STAGE_COUNT
} stage;

/* "accept" ... "record". Static. */
const char *stage_name(stage s);

/* Stage `s` ended at `now_ns`. Each stage has one call of this, in the file of its name. */
static inline void stage_stamp(uint64_t stage_ns[STAGE_COUNT], stage s, uint64_t now_ns)
{
    assert((unsigned)s < STAGE_COUNT);
    stage_ns[s] = now_ns;
}

#endif
