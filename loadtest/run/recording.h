#ifndef LOADTEST_RUN_RECORDING_H
#define LOADTEST_RUN_RECORDING_H

#include "loadtest/report/result.h"
#include "loadtest/run/worker.h"
#include "loadtest/wire/request.h"
#include "loadtest/wire/response.h"

/* Counts each request: the only place that decides what is measured and as what. Owned by a
 * worker's thread. */
typedef struct recording {
    result *result;
    worker_live *live;
    bool open_loop;
    uint64_t window_start_ns, window_end_ns, timeout_ns;
    uint64_t slo_limit_ns; /* 0: none */
} recording;

/* A request was created; now_ns - intended_ns is the client's lag. */
void recording_sent(recording *to, const request *r, uint64_t now_ns);
void recording_succeeded(recording *to, const request *r, const response *a, uint64_t now_ns);
/* `reason` is kept if it is the first of its kind. */
void recording_failed(recording *to, const request *r, request_error why, const char *reason,
                      uint64_t now_ns);
/* The run was stopped before the response arrived. */
void recording_unfinished(recording *to, const request *r, uint64_t now_ns);

#endif
