#include "loadtest/report/result.h"

#include "loadtest/wire/memory.h"
#include "loadtest/workload/quantity.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_NS_MIN 200000000u

static const struct {
    const char *name, *text;
} kinds[REQUEST_ERROR_COUNT] = {
    [REQUEST_TIMEOUT] = {"timeout", "no response within the timeout"},
    [REQUEST_CONNECT] = {"connect", "no connection"},
    [REQUEST_CLOSED] = {"closed", "connection lost"},
    [REQUEST_RESET] = {"stream_reset", "stream reset"},
    [REQUEST_PROTOCOL] = {"protocol", "not HTTP"},
    [REQUEST_REFUSED] = {"refused", "rejected (429, 503)"},
    [REQUEST_DEADLINE] = {"deadline", "deadline passed (504)"},
    [REQUEST_HTTP_OTHER] = {"http", "other HTTP status"},
    [REQUEST_WRONG_RESPONSE] = {"wrong_answer", "wrong response (--expect)"},
};

const char *result_error_name(request_error kind)
{
    return kinds[kind].name;
}

const char *result_error_text(request_error kind)
{
    return kinds[kind].text;
}

void result_init(result *r, uint64_t duration_ns)
{
    /* Whole tenths of a second, for round numbers on the axis. */
    uint64_t step = (duration_ns / 100 + 99999999u) / 100000000u * 100000000u;
    r->slice_ns = step < SLICE_NS_MIN ? SLICE_NS_MIN : step;
    uint64_t count = (duration_ns + r->slice_ns - 1) / r->slice_ns;
    assert(count <= RESULT_SLICES_MAX);
    r->slice_count = count ? (unsigned)count : 1;
    r->slices = memory_allocate(r->slice_count, sizeof *r->slices);
}

void result_dispose(result *r)
{
    free(r->slices);
    r->slices = NULL;
    r->slice_count = 0;
}

histogram *result_stage_of(result *r, const char *name)
{
    for (unsigned i = 0; i < r->stage_count; i++)
        if (strcmp(r->stages[i].name, name) == 0)
            return &r->stages[i].duration;
    if (r->stage_count == RESULT_STAGES_MAX)
        return NULL;
    result_stage *stage = &r->stages[r->stage_count++];
    snprintf(stage->name, sizeof stage->name, "%s", name);
    return &stage->duration;
}

static void merge_slices(result *into, const result *from)
{
    if (into->slices == NULL || into->slice_ns != from->slice_ns)
        return; /* different durations: no common time axis */
    for (unsigned i = 0; i < into->slice_count && i < from->slice_count; i++) {
        into->slices[i].sent += from->slices[i].sent;
        into->slices[i].succeeded += from->slices[i].succeeded;
        into->slices[i].failed += from->slices[i].failed;
        histogram_merge(&into->slices[i].latency, &from->slices[i].latency);
    }
}

void result_merge(result *into, const result *from)
{
    into->sent += from->sent;
    into->succeeded += from->succeeded;
    into->completed_in_window += from->completed_in_window;
    into->within_slo += from->within_slo;
    into->unfinished += from->unfinished;
    if (from->unfinished_oldest_ns > into->unfinished_oldest_ns)
        into->unfinished_oldest_ns = from->unfinished_oldest_ns;
    for (int k = 0; k < REQUEST_ERROR_COUNT; k++) {
        into->errors[k] += from->errors[k];
        if (into->reasons[k][0] == 0)
            memcpy(into->reasons[k], from->reasons[k], RESULT_REASON_BYTES);
    }
    for (int code = 0; code < RESULT_CODES; code++)
        into->codes[code] += from->codes[code];
    into->tokens += from->tokens;
    into->bytes_sent += from->bytes_sent;
    into->bytes_received += from->bytes_received;
    into->verified += from->verified;
    into->connections_opened += from->connections_opened;
    into->connections_lost += from->connections_lost;
    into->retries += from->retries;
    into->loop_busy = fmax(into->loop_busy, from->loop_busy);
    into->steal_share = fmax(into->steal_share, from->steal_share);
    into->cpu_s += from->cpu_s;
    into->aborted |= from->aborted;
    histogram_merge(&into->latency, &from->latency);
    histogram_merge(&into->latency_ok, &from->latency_ok);
    histogram_merge(&into->service, &from->service);
    histogram_merge(&into->lag, &from->lag);
    histogram_merge(&into->connection_wait, &from->connection_wait);
    histogram_merge(&into->server, &from->server);
    histogram_merge(&into->refused, &from->refused);
    for (unsigned i = 0; i < from->stage_count; i++) {
        histogram *h = result_stage_of(into, from->stages[i].name);
        if (h != NULL)
            histogram_merge(h, &from->stages[i].duration);
    }
    merge_slices(into, from);
}

uint64_t result_failed(const result *r)
{
    uint64_t sum = 0;
    for (int k = 0; k < REQUEST_ERROR_COUNT; k++)
        sum += r->errors[k];
    return sum;
}

static double per_second(const result *r, uint64_t count)
{
    return r->setup.duration_ns ? (double)count * 1e9 / (double)r->setup.duration_ns : 0;
}

double result_rate(const result *r)
{
    /* An open loop counts the successes of the window's requests. A closed loop sends when
     * responses arrive, so it counts the successes that arrived inside the window. */
    bool closed = strcmp(r->setup.loop, "closed") == 0;
    return per_second(r, closed ? r->completed_in_window : r->succeeded);
}

double result_rate_sent(const result *r)
{
    return per_second(r, r->sent);
}

double result_goodput(const result *r)
{
    return per_second(r, r->within_slo);
}

const char *result_bottleneck(const result *r, char *text, size_t text_bytes)
{
    double lag_ms = (double)histogram_quantile(&r->lag, 0.99) / 1e6;
    double p99_ms = (double)histogram_quantile(&r->latency, 0.99) / 1e6;
    if (r->loop_busy > 0.9) {
        snprintf(text, text_bytes,
                 "the client was the bottleneck: one of its threads was busy %.0f%% of the time. "
                 "Use --threads, or a second machine and --merge.",
                 r->loop_busy * 100);
        return text;
    }
    if (lag_ms > 1 && lag_ms > 0.1 * p99_ms) {
        snprintf(text, text_bytes,
                 "the client was late: it sent 1%% of the requests at least %.1f ms after their "
                 "intended time. Run it on a core of its own or on another machine.",
                 lag_ms);
        return text;
    }
    return NULL;
}

static uint64_t at_rank(const histogram *h, double rank, double count)
{
    double q = rank / count;
    return histogram_quantile(h, q < 0 ? 0 : q > 1 ? 1 : q);
}

result_bounds result_quantile_bounds(const histogram *h, double q)
{
    double n = (double)h->count;
    if (n == 0)
        return (result_bounds){0, 0, 0};
    double spread = 1.96 * sqrt(n * q * (1 - q));
    return (result_bounds){(double)at_rank(h, n * q - spread, n), (double)histogram_quantile(h, q),
                           (double)at_rank(h, n * q + spread + 1, n)};
}

json_t *result_histogram_to_json(const histogram *h)
{
    json_t *cells = json_array();
    for (unsigned i = 0; i < HISTOGRAM_CELLS; i++)
        if (h->cells[i] != 0)
            json_array_append_new(cells,
                                  json_pack("[I,I]", (json_int_t)i, (json_int_t)h->cells[i]));
    return json_pack("{s:s,s:i,s:i,s:I,s:I,s:I,s:o}", "unit", "ns", "cell_bits",
                     HISTOGRAM_CELL_BITS, "octave_max", HISTOGRAM_OCTAVE_MAX, "count",
                     (json_int_t)h->count, "sum", (json_int_t)h->sum, "max", (json_int_t)h->max,
                     "cells", cells);
}

status result_histogram_from_json(histogram *h, const json_t *json)
{
    histogram_reset(h);
    if (json_integer_value(json_object_get(json, "cell_bits")) != HISTOGRAM_CELL_BITS ||
        json_integer_value(json_object_get(json, "octave_max")) != HISTOGRAM_OCTAVE_MAX)
        return status_fail(STATUS_UNSUPPORTED,
                           "the histogram's cells differ from those of this program");
    const json_t *cells = json_object_get(json, "cells"), *pair;
    if (!json_is_array(cells))
        return status_fail(STATUS_CORRUPT, "the histogram has no cells");
    uint64_t count = 0;
    json_int_t last = -1;
    for (size_t i = 0; (pair = json_array_get(cells, i)) != NULL; i++) {
        const json_t *cell = json_array_get(pair, 0), *times = json_array_get(pair, 1);
        json_int_t at = json_integer_value(cell), n = json_integer_value(times);
        bool right = json_array_size(pair) == 2 && json_is_integer(cell) && at > last &&
                     at < HISTOGRAM_CELLS && n > 0 && n <= UINT32_MAX;
        if (!right)
            return status_fail(STATUS_CORRUPT,
                               "cells[%zu]: expected [cell, count], the cell above the one before "
                               "and below %d, the count from 1 to %" PRIu32,
                               i, HISTOGRAM_CELLS, UINT32_MAX);
        h->cells[at] = (uint32_t)n;
        count += (uint64_t)n;
        last = at;
    }
    json_int_t sum = json_integer_value(json_object_get(json, "sum"));
    json_int_t max = json_integer_value(json_object_get(json, "max"));
    json_int_t told = json_integer_value(json_object_get(json, "count"));
    if (told < 0 || (uint64_t)told != count || count > UINT32_MAX)
        return status_fail(STATUS_CORRUPT,
                           "count: the cells hold %" PRIu64 " (at most %" PRIu32 ")", count,
                           UINT32_MAX);
    if (sum < 0 || max < 0 || (last >= 0 && histogram_cell((uint64_t)max) != (unsigned)last))
        return status_fail(STATUS_CORRUPT, "sum and max do not match the cells");
    h->count = count;
    h->sum = (uint64_t)sum;
    h->max = (uint64_t)max;
    return STATUS_OK;
}

static status parse_slo(result_slo *slo, const char *text)
{
    *slo = (result_slo){0};
    snprintf(slo->text, sizeof slo->text, "%s", text);
    const char *equals = strchr(text, '=');
    char *end;
    if (equals == NULL || strlen(text) >= sizeof slo->text)
        goto malformed;
    if (strncmp(text, "errors=", 7) == 0) {
        slo->kind = SLO_ERRORS;
        slo->limit = strtod(equals + 1, &end);
        if (end == equals + 1 || !(slo->limit >= 0))
            goto malformed;
        if (strcmp(end, "%") == 0)
            slo->limit /= 100;
        else if (*end != 0)
            goto malformed;
        if (slo->limit > 1)
            return status_fail(STATUS_INVALID_ARGUMENT, "\"%s\": a share is at most 1, or 100%%",
                               text);
        return STATUS_OK;
    }
    slo->kind = SLO_QUANTILE;
    uint64_t limit_ns;
    slo->quantile = text[0] == 'p' ? strtod(text + 1, &end) / 100 : -1;
    if (slo->quantile < 0 || slo->quantile > 1 || end != equals || end == text + 1)
        goto malformed;
    status s = quantity_duration(equals + 1, &limit_ns);
    if (s)
        return s;
    slo->limit = (double)limit_ns;
    return STATUS_OK;
malformed:
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "\"%s\" is not an objective such as p99=50ms or errors=0.1%%", text);
}

status result_slo_parse(result_slo *list, size_t *count, const char *text)
{
    if (*text == 0)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "expected objectives such as p99=50ms or errors=0.1%%");
    while (*text != 0) {
        char piece[64];
        size_t bytes = strcspn(text, ",");
        if (*count == RESULT_SLO_MAX)
            return status_fail(STATUS_INVALID_ARGUMENT, "at most %d objectives", RESULT_SLO_MAX);
        snprintf(piece, sizeof piece, "%.*s", (int)bytes, text);
        status s = parse_slo(&list[*count], piece);
        if (s)
            return s;
        ++*count;
        text += bytes + (text[bytes] == ',');
    }
    return STATUS_OK;
}

bool result_slo_held(const result *r, const result_slo *slo, double *measured)
{
    if (slo->kind == SLO_ERRORS)
        *measured = r->sent ? (double)result_failed(r) / (double)r->sent : 1;
    else
        *measured = (double)histogram_quantile(&r->latency, slo->quantile);
    return r->sent != 0 && !r->aborted && *measured <= slo->limit;
}

bool result_slo_all_held(const result *r, const result_slo *list, size_t count)
{
    double measured;
    for (size_t i = 0; i < count; i++)
        if (!result_slo_held(r, &list[i], &measured))
            return false;
    return true;
}

uint64_t result_slo_limit_ns(const result_slo *list, size_t count)
{
    double limit = 0;
    for (size_t i = 0; i < count; i++)
        if (list[i].kind == SLO_QUANTILE && list[i].limit > limit)
            limit = list[i].limit;
    return (uint64_t)limit;
}
