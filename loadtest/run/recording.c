#include "loadtest/run/recording.h"

#include <stdio.h>
#include <string.h>

/* One writer: a relaxed load and store is an addition without a locked instruction. */
static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static result_slice *slice_of(recording *to, const request *r)
{
    uint64_t at = (r->intended_ns - to->window_start_ns) / to->result->slice_ns;
    unsigned count = to->result->slice_count;
    return &to->result->slices[at < count ? at : count - 1];
}

void recording_sent(recording *to, const request *r, uint64_t now_ns)
{
    add(&to->live->sent, 1);
    if (!r->measured)
        return;
    add(&to->result->sent, 1);
    slice_of(to, r)->sent++;
    if (to->open_loop)
        histogram_record(&to->result->lag, now_ns - r->intended_ns);
}

/* Reports are one line of ASCII each: other characters become question marks. */
static void keep_reason(char *to, const char *reason)
{
    snprintf(to, RESULT_REASON_BYTES, "%s", reason);
    for (; *to != 0; to++)
        if ((unsigned char)*to < ' ' || (unsigned char)*to > '~')
            *to = '?';
}

void recording_failed(recording *to, const request *r, request_error why, const char *reason,
                      uint64_t now_ns)
{
    uint64_t latency_ns = now_ns - r->intended_ns;
    if (r->measured && (why == REQUEST_REFUSED || why == REQUEST_DEADLINE))
        histogram_record(&to->result->refused, latency_ns);
    /* A fast failure is not a fast response: it counts as the timeout. */
    if (latency_ns < to->timeout_ns)
        latency_ns = to->timeout_ns;
    add(&to->live->failed, 1);
    histogram_record(&to->live->latency, latency_ns);
    if (!r->measured)
        return;
    result *all = to->result;
    add(&all->errors[why], 1);
    if (all->reasons[why][0] == 0)
        keep_reason(all->reasons[why], reason);
    histogram_record(&all->latency, latency_ns);
    result_slice *slice = slice_of(to, r);
    slice->failed++;
    histogram_record(&slice->latency, latency_ns);
}

typedef struct timing_sum {
    result *result;
    uint64_t sum_ns, total_ns;
} timing_sum;

static void on_timing(void *context, const char *name, uint64_t duration_ns)
{
    timing_sum *sum = context;
    histogram *h = result_stage_of(sum->result, name);
    if (h != NULL)
        histogram_record(h, duration_ns);
    if (strcmp(name, "total") == 0)
        sum->total_ns = duration_ns;
    else
        sum->sum_ns += duration_ns;
}

static void record_timing(recording *to, const response *a)
{
    timing_sum sum = {.result = to->result};
    server_timing_parse(a->timing, a->timing_bytes, on_timing, &sum);
    histogram_record(&to->result->server, sum.total_ns ? sum.total_ns : sum.sum_ns);
}

void recording_succeeded(recording *to, const request *r, const response *a, uint64_t now_ns)
{
    uint64_t latency_ns = now_ns - r->intended_ns;
    result *all = to->result;
    add(&to->live->succeeded, 1);
    histogram_record(&to->live->latency, latency_ns);
    if (now_ns >= to->window_start_ns && now_ns < to->window_end_ns)
        add(&all->completed_in_window, 1);
    if (!r->measured)
        return;
    add(&all->succeeded, 1);
    if (to->slo_limit_ns == 0 || latency_ns <= to->slo_limit_ns)
        add(&all->within_slo, 1);
    histogram_record(&all->latency, latency_ns);
    histogram_record(&all->latency_ok, latency_ns);
    histogram_record(&all->service, now_ns - r->sent_ns);
    all->tokens += r->payload->tokens;
    all->bytes_received += a->body_bytes;
    result_slice *slice = slice_of(to, r);
    slice->succeeded++;
    histogram_record(&slice->latency, latency_ns);
    if (a->timing_bytes != 0)
        record_timing(to, a);
}

void recording_unfinished(recording *to, const request *r, uint64_t now_ns)
{
    if (!r->measured)
        return;
    uint64_t age_ns = now_ns > r->intended_ns ? now_ns - r->intended_ns : 0;
    to->result->unfinished++;
    if (age_ns > to->result->unfinished_oldest_ns)
        to->result->unfinished_oldest_ns = age_ns;
}
