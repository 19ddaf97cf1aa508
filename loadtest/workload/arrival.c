#include "loadtest/workload/arrival.h"

#include "loadtest/workload/quantity.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1e9

static const char *const names[] = {"poisson", "constant", "burst", "ramp", "steps", "trace"};

const char *arrival_name(arrival_kind kind)
{
    return names[kind];
}

static status parse_burst(arrival_spec *spec, const char *text)
{
    char *end;
    long size = strtol(text, &end, 10);
    if (end == text || size < 1 || size > 1000000)
        return status_fail(STATUS_INVALID_ARGUMENT, "burst:SIZE needs a size of 1 to 1000000");
    uint64_t period_ns = 0;
    if (*end == ':') {
        status s = quantity_duration(end + 1, &period_ns);
        if (s)
            return s;
        if (period_ns == 0)
            return status_fail(STATUS_INVALID_ARGUMENT, "the period of a burst cannot be 0");
    } else if (*end != 0) {
        return status_fail(STATUS_INVALID_ARGUMENT, "unexpected \"%s\" after burst:%ld", end, size);
    }
    spec->kind = ARRIVAL_BURST;
    spec->burst_requests = (uint32_t)size;
    spec->burst_period_ns = period_ns;
    if (period_ns != 0)
        spec->rate = (double)size * NS_PER_S / (double)period_ns;
    return STATUS_OK;
}

static status parse_ramp(arrival_spec *spec, const char *text)
{
    char *end;
    double from = strtod(text, &end), to = 0;
    if (end != text && *end == ':') {
        text = end + 1;
        to = strtod(text, &end);
    } else {
        end = (char *)text;
    }
    if (end == text || *end != 0 || !(from >= 0) || !(to >= 0) || !(from + to > 0) ||
        !isfinite(from + to))
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "ramp needs two rates, such as ramp:100:500 (requests per second)");
    spec->kind = ARRIVAL_RAMP;
    spec->rate = from;
    spec->rate_end = to;
    return STATUS_OK;
}

static status parse_steps(arrival_spec *spec, const char *text)
{
    arrival_step steps[ARRIVAL_STEPS_MAX];
    unsigned count = 0;
    uint64_t duration_ns = 0;
    double expected = 0;
    for (const char *at = text;;) {
        char *end, piece[64];
        size_t bytes = strcspn(at, ",");
        if (bytes >= sizeof piece || count == ARRIVAL_STEPS_MAX)
            return status_fail(STATUS_INVALID_ARGUMENT, "at most %d steps", ARRIVAL_STEPS_MAX);
        memcpy(piece, at, bytes);
        piece[bytes] = 0;
        char *times = strchr(piece, 'x');
        if (times != NULL)
            *times = 0; /* before strtod sees it: "0x1s" is no hexadecimal 1 */
        double rate = strtod(piece, &end);
        if (times == NULL || end == piece || *end != 0 || !(rate >= 0) || !isfinite(rate))
            return status_fail(STATUS_INVALID_ARGUMENT,
                               "steps are RATExTIME, such as steps:100x10s,200x10s");
        status s = quantity_duration(times + 1, &steps[count].duration_ns);
        if (s)
            return s;
        steps[count].rate = rate;
        duration_ns += steps[count].duration_ns;
        expected += rate * (double)steps[count].duration_ns / NS_PER_S;
        count++;
        at += bytes;
        if (*at == 0)
            break;
        at++;
    }
    if (expected < 1)
        return status_fail(STATUS_INVALID_ARGUMENT, "the steps make no request at all");
    spec->kind = ARRIVAL_STEPS;
    memcpy(spec->steps, steps, sizeof steps);
    spec->step_count = count;
    spec->duration_ns = duration_ns;
    return STATUS_OK;
}

status arrival_parse(arrival_spec *spec, const char *text)
{
    if (strcmp(text, "poisson") == 0 || strcmp(text, "constant") == 0) {
        spec->kind = text[0] == 'p' ? ARRIVAL_POISSON : ARRIVAL_CONSTANT;
        return STATUS_OK;
    }
    if (strncmp(text, "burst:", 6) == 0)
        return parse_burst(spec, text + 6);
    if (strncmp(text, "ramp:", 5) == 0)
        return parse_ramp(spec, text + 5);
    if (strncmp(text, "steps:", 6) == 0)
        return parse_steps(spec, text + 6);
    return status_fail(STATUS_INVALID_ARGUMENT,
                       "unknown arrivals \"%s\": poisson, constant, burst:SIZE[:PERIOD], "
                       "ramp:FROM:TO or steps:RATExTIME,...",
                       text);
}

/* Expected arrivals in the whole window. */
static double expected_total(const arrival_spec *spec)
{
    double seconds = (double)spec->duration_ns / NS_PER_S, total = 0;
    switch (spec->kind) {
    case ARRIVAL_RAMP:
        return seconds * (spec->rate + spec->rate_end) / 2;
    case ARRIVAL_STEPS:
        for (unsigned i = 0; i < spec->step_count; i++)
            total += spec->steps[i].rate * (double)spec->steps[i].duration_ns / NS_PER_S;
        return total;
    case ARRIVAL_TRACE:
        return (double)spec->trace_count;
    default:
        return seconds * spec->rate;
    }
}

uint64_t arrival_count(const arrival_spec *spec)
{
    if (spec->kind != ARRIVAL_TRACE)
        return (uint64_t)llround(expected_total(spec));
    size_t count = 0; /* a window may cut a trace short */
    while (count < spec->trace_count && spec->trace_ns[count] < spec->duration_ns)
        count++;
    return count;
}

double arrival_mean_rate(const arrival_spec *spec)
{
    if (spec->duration_ns == 0)
        return 0;
    return (double)arrival_count(spec) * NS_PER_S / (double)spec->duration_ns;
}

static double starting_rate(const arrival_spec *spec)
{
    if (spec->kind == ARRIVAL_STEPS)
        return spec->steps[0].rate;
    if (spec->kind == ARRIVAL_TRACE)
        return arrival_mean_rate(spec);
    return spec->rate;
}

static void begin_phase(arrival *a, double total, uint64_t count)
{
    uint32_t size = a->spec->kind == ARRIVAL_BURST ? a->spec->burst_requests : 1;
    a->in_window_left = count;
    a->left = (count + size - 1) / size;
    a->done = 0;
    a->position = 0;
    a->total = total;
    a->repeat_left = 0;
}

void arrival_init(arrival *a, const arrival_spec *spec, uint64_t seed)
{
    *a = (arrival){.spec = spec, .warming = spec->warm_up_ns > 0};
    random_seed(&a->random, seed);
    if (a->warming) {
        double total = starting_rate(spec) * (double)spec->warm_up_ns / NS_PER_S;
        begin_phase(a, total, (uint64_t)llround(total));
    } else {
        begin_phase(a, expected_total(spec), arrival_count(spec));
    }
}

/* The time at which the expected number of arrivals reaches `position`: the inverse of the rate's
 * integral. In ns since the phase began. */
static double time_of(const arrival *a, double position)
{
    const arrival_spec *spec = a->spec;
    if (a->warming)
        return position / starting_rate(spec) * NS_PER_S;
    switch (spec->kind) {
    case ARRIVAL_RAMP: {
        /* rate t + slope t^2 / 2 = position, in the form that is stable as the slope nears 0 */
        double slope = (spec->rate_end - spec->rate) * NS_PER_S / (double)spec->duration_ns;
        double root = sqrt(fmax(0, spec->rate * spec->rate + 2 * slope * position));
        double below = spec->rate + root;
        return below > 0 ? 2 * position / below * NS_PER_S : 0;
    }
    case ARRIVAL_STEPS: {
        double start = 0;
        for (unsigned i = 0; i < spec->step_count; i++) {
            double span = (double)spec->steps[i].duration_ns;
            double inside = spec->steps[i].rate * span / NS_PER_S;
            if (position <= inside && inside > 0)
                return start + position / spec->steps[i].rate * NS_PER_S;
            position -= inside;
            start += span;
        }
        return start;
    }
    default:
        return position / spec->rate * NS_PER_S;
    }
}

/* Moves to the next arrival of the phase, or the next burst. */
static uint64_t step(arrival *a)
{
    const arrival_spec *spec = a->spec;
    if (!a->warming && spec->kind == ARRIVAL_TRACE)
        return spec->trace_ns[a->done];
    if (spec->kind == ARRIVAL_CONSTANT)
        return (uint64_t)time_of(a, (double)a->done);
    if (spec->kind == ARRIVAL_BURST && spec->burst_period_ns != 0)
        return a->done * spec->burst_period_ns;
    /* The least of `left` uniform draws on what remains of the phase. */
    double remaining = a->total - a->position;
    a->position += remaining * -expm1(log(random_unit(&a->random)) / (double)a->left);
    return (uint64_t)time_of(a, a->position);
}

bool arrival_next(arrival *a, uint64_t *offset_ns)
{
    while (a->in_window_left == 0 || (a->left == 0 && a->repeat_left == 0)) {
        if (!a->warming)
            return false;
        a->warming = false;
        begin_phase(a, expected_total(a->spec), arrival_count(a->spec));
    }
    if (a->repeat_left == 0) {
        uint64_t span_ns = a->warming ? a->spec->warm_up_ns : a->spec->duration_ns;
        uint64_t at_ns = step(a);
        /* Rounding must not push an arrival out of its phase. */
        if (at_ns >= span_ns)
            at_ns = span_ns - 1;
        a->left--;
        a->done++;
        a->repeat_ns = at_ns + (a->warming ? 0 : a->spec->warm_up_ns);
        a->repeat_left = a->spec->kind == ARRIVAL_BURST ? a->spec->burst_requests : 1;
    }
    a->repeat_left--;
    a->in_window_left--;
    *offset_ns = a->repeat_ns;
    return true;
}
