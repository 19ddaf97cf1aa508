#include <math.h>

#include "tests/sim/sim.h"

static uint64_t next(uint64_t *x)
{
    /* splitmix64 (Steele, Lea, Flood 2014). */
    uint64_t z = (*x += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double sim_uniform(uint64_t *random)
{
    return ((double)(next(random) >> 11) + 0.5) / 9007199254740992.0;
}

double sim_normal(uint64_t *random)
{
    double u = sim_uniform(random), v = sim_uniform(random);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

void sim_trace_init(sim_trace *t, const sim_config *c)
{
    *t = (sim_trace){.config = c, .random = c->seed * 7919 + 1, .left = c->requests};
}

/* Requests per second now. Both shapes keep the mean. */
static double rate_now(sim_trace *t)
{
    const sim_config *c = t->config;
    if (c->arrivals ==
        SIM_BURSTS) /* 1.6 times the rate for 0.2 s, then 0.8 for 0.6 s, on average */
        return c->rate * (t->is_burst ? 1.6 : 0.8);
    if (c->arrivals == SIM_DIURNAL) {
        double day_s = (double)c->requests / c->rate / 2; /* two days in a run */
        return c->rate * (1 + 0.5 * sin(6.283185307179586 * (double)t->now_ns / 1e9 / day_s));
    }
    return c->rate;
}

static int32_t draw_length(sim_trace *t, sim_lengths kind)
{
    double u;
    switch (kind) {
    case SIM_HEAVY_TAIL:
        u = exp(3.09 + 1.06 * sim_normal(&t->random));
        return u < 1 ? 1 : u > 256 ? 256 : (int32_t)u;
    case SIM_UNIFORM:
        return 1 + (int32_t)(sim_uniform(&t->random) * 128);
    case SIM_LONG:
        return 200 + (int32_t)(sim_uniform(&t->random) * 57);
    default:
        return 32;
    }
}

bool sim_trace_next(sim_trace *t, sim_request *out)
{
    const sim_config *c = t->config;
    if (t->left-- <= 0)
        return false;
    double gap_s = -log(sim_uniform(&t->random)) / rate_now(t);
    if (c->arrivals == SIM_BURSTS) {
        t->phase_left_s -= gap_s;
        if (t->phase_left_s <= 0) {
            t->is_burst = !t->is_burst;
            t->phase_left_s = -log(sim_uniform(&t->random)) * (t->is_burst ? 0.2 : 0.6);
        }
    }
    t->now_ns += (uint64_t)(gap_s * 1e9) + 1;
    double u = sim_uniform(&t->random), total = 0;
    for (int i = 0; i < c->stream_count; i++)
        total += c->streams[i].share;
    int stream = 0;
    for (u *= total; stream < c->stream_count - 1 && u >= c->streams[stream].share; stream++)
        u -= c->streams[stream].share;
    const sim_stream *s = &c->streams[stream];
    *out = (sim_request){.arrival_ns = t->now_ns,
                         .deadline_ns = s->slo_ns ? t->now_ns + s->slo_ns : UINT64_MAX,
                         .stream = stream,
                         .length = draw_length(t, s->lengths)};
    return true;
}
