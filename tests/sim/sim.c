#include "tests/sim/sim.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

const int64_t sim_batches[] = {1, 2, 4, 8, 16, 32};
const int64_t sim_sequences[] = {16, 24, 32, 48, 64, 96, 128, 192, 256};

#define MEMBERS_MAX 64
#define PENDING_MAX 65536

typedef struct sim_device {
    device base;
    bool is_busy, is_lost;
    uint64_t free_ns, begun_ns, until_ns; /* until_ns: asked to be asked again */
    sim_request members[MEMBERS_MAX];
    job *jobs[MEMBERS_MAX]; /* Penstock's, of the members */
    cost_attribution attribution;
    uint64_t costs_ns;
    int count;
    int model, bucket;
    int64_t tokens, squares;
} sim_device;

typedef struct sim {
    const sim_config *config;
    sim_result *result;
    uint64_t random, now_ns, decide_ns, end_ns;
    double estimate_errors;
    sim_device devices[SIM_DEVICES_MAX];
    device *device_list[SIM_DEVICES_MAX];
    uint64_t lost_from_ns, lost_until_ns;
    /* Penstock. */
    dispatch dispatch;
    admission admission;
    model models[SIM_MODELS_MAX];
    device_program programs[MODEL_BUCKETS_MAX];
    device_program *program_list[MODEL_BUCKETS_MAX][SIM_DEVICES_MAX];
    job *free_jobs;
    double computed, real;
    /* Baselines, by arrival. */
    sim_request *pending;
    int pending_count;
} sim;

const char *sim_scheduler_name(sim_scheduler s)
{
    static const char *const names[] = {"penstock", "window", "preferred", "edf", "oracle"};
    return names[s];
}

void sim_default(sim_config *c)
{
    memset(c, 0, sizeof *c);
    c->seed = 1;
    c->rate = 1000;
    c->requests = 40000;
    c->streams[0] = (sim_stream){.share = 1, .slo_ns = 60000000, .lengths = SIM_HEAVY_TAIL};
    c->stream_count = 1;
    c->models[0] = (sim_model){.fixed_ns = 300000, .token_ns = 5000, .square_ns = 4, .weight = 1};
    c->model_count = 1;
    c->tenant_count = 1;
    c->device_count = 2;
    c->noise = 0.03;
    c->lost_device = -1;
    c->delay_ns = 2000000;
    c->batch_max = 16;
}

static int64_t up(const int64_t *sizes, int count, int64_t least)
{
    for (int i = 0; i < count; i++)
        if (sizes[i] >= least)
            return sizes[i];
    return sizes[count - 1];
}

double sim_time_ns(const sim_model *m, int64_t rows, int64_t length, int64_t *tokens)
{
    double r = (double)up(sim_batches, SIM_BATCHES, rows);
    double l = (double)up(sim_sequences, SIM_SEQUENCES, length);
    if (tokens)
        *tokens = (int64_t)(r * l);
    return m->fixed_ns + r * (m->token_ns * l + m->square_ns * l * l);
}

static void make_model(sim *s, int index)
{
    const sim_model *kind = &s->config->models[index];
    model *m = &s->models[index];
    m->name = "simulated";
    m->index = index;
    m->serial = 1;
    m->weight = kind->weight;
    m->devices = s->device_list;
    m->device_count = s->config->device_count;
    m->batching = (model_batching){.can_batch = true,
                                   .can_pad = true,
                                   .batch_max = SIM_BATCH_MAX,
                                   .sequence_max = 256,
                                   .queue_rows_max = 1000000};
    m->batch_bucket_count = SIM_BATCHES;
    m->sequence_bucket_count = SIM_SEQUENCES;
    memcpy(m->batch_buckets, sim_batches, SIM_BATCHES * sizeof *sim_batches);
    memcpy(m->sequence_buckets, sim_sequences, SIM_SEQUENCES * sizeof *sim_sequences);
    m->latency = latency_create(s->device_list, s->config->device_count);
    assert(m->latency != NULL);
    for (int q = 0; q < SIM_SEQUENCES; q++)
        for (int b = 0; b < SIM_BATCHES; b++) {
            int i = m->bucket_count++;
            m->buckets[i].shape = (device_bucket){sim_batches[b], sim_sequences[q]};
            device_program *p = &s->programs[i];
            p->layout = kind->is_ragged ? DEVICE_RAGGED : DEVICE_PADDED;
            p->bucket = m->buckets[i].shape;
            for (int d = 0; d < s->config->device_count; d++)
                s->program_list[i][d] = p;
            m->buckets[i].programs = s->program_list[i];
            /* Warm-up ran each once, with the noise of any other execution. */
            int64_t rows = sim_batches[b], length = sim_sequences[q];
            double ns = sim_time_ns(kind, rows, length, NULL) *
                        (1 + s->config->noise * sim_normal(&s->random));
            latency_observe(m->latency, 0, i,
                            (latency_work){rows, rows * length, rows * length * length},
                            (uint64_t)ns, 1);
        }
}

static int alive(const sim *s)
{
    int n = 0;
    for (int d = 0; d < s->config->device_count; d++)
        n += !s->devices[d].is_lost;
    return n > 0 ? n : 1;
}

static int cell_of(int64_t length)
{
    int i = 0;
    while (i < SIM_SEQUENCES - 1 && sim_sequences[i] < length)
        i++;
    return i;
}

static void finish(sim *s, const sim_request *r, uint64_t now_ns)
{
    sim_stream_result *to = &s->result->streams[r->stream];
    bool is_met = now_ns <= r->deadline_ns;
    if (r->is_probe) {
        to->probes_met += is_met;
        to->sure_met += is_met && r->is_sure;
        to->told_ns += (double)r->told_ns;
        to->took_ns += (double)(now_ns - r->arrival_ns);
        return;
    }
    to->met += is_met;
    to->late += !is_met;
    s->result->met += is_met;
    s->result->met_by_length[cell_of(r->length)] += is_met;
    histogram_record(&to->latency, now_ns - r->arrival_ns);
    histogram_record(&s->result->latency, now_ns - r->arrival_ns);
}

/* What a dropped job or request comes to. */
static void give_up(sim *s, const sim_request *r)
{
    s->result->streams[r->stream].dropped += !r->is_probe;
}

static job *acquire_job(sim *s)
{
    job *j = s->free_jobs;
    if (j != NULL) {
        s->free_jobs = j->next;
        return j;
    }
    j = calloc(1, sizeof *j);
    assert(j != NULL);
    return j;
}

static void release_job(sim *s, job *j)
{
    j->next = s->free_jobs;
    s->free_jobs = j;
}

static char told_surely, told_perhaps; /* a probe's slot: that it would be late */

static sim_request request_of(const job *j)
{
    return (sim_request){.arrival_ns = j->stage_ns[STAGE_ADMIT],
                         .deadline_ns = j->deadline_ns,
                         .stream = (int32_t)j->tag,
                         .is_probe = j->owner != NULL,
                         .is_sure = j->owner == &told_surely,
                         .told_ns = j->stage_ns[STAGE_FORM],
                         .length = (int32_t)j->length};
}

static bool acquire_hold(sim *s, job *j, uint64_t cost_ns)
{
    int64_t rows_max = s->config->queue_rows_max, rows_before;
    hold_limits limits = {INT64_MAX, INT64_MAX};
    if (rows_max > 0)
        limits = (hold_limits){rows_max, admission_share(&s->admission, (int)j->tenant, rows_max)};
    return hold_acquire(&s->admission.backlog, &j->hold, j->model, job_tenant_class(j), 1, cost_ns,
                        limits, &rows_before);
}

static void penstock_arrive(sim *s, const sim_request *r)
{
    const sim_stream *stream = &s->config->streams[r->stream];
    job *j = acquire_job(s);
    j->model = &s->models[stream->model];
    j->rows = 1;
    j->length = r->length;
    j->deadline_ns = r->deadline_ns;
    j->priority = stream->priority;
    j->tenant = (uint32_t)stream->tenant;
    j->tag = (uint64_t)r->stream;
    j->stage_ns[STAGE_ADMIT] = r->arrival_ns;
    uint64_t start_ns = clock_now_ns();
    admission_estimate e;
    int first = 0;
    while (first < s->config->device_count - 1 && s->devices[first].is_lost)
        first++;
    admission_estimate_job(&s->admission, j->model, j->model->latency, first, alive(s),
                           job_tenant_class(j), 1, j->length, s->now_ns, &e);
    bool is_refused = admission_is_hopeless(&e, s->now_ns, r->deadline_ns), is_probe = false;
    if (is_refused) {
        s->result->streams[r->stream].refused++;
        is_probe = s->config->probe_share > 0 && sim_uniform(&s->random) < s->config->probe_share;
        bool is_sure = admission_is_sure(&e, s->now_ns, r->deadline_ns);
        s->result->streams[r->stream].probes += is_probe;
        s->result->streams[r->stream].sure_probes += is_probe && is_sure;
        j->owner = is_sure ? &told_surely : &told_perhaps;
    }
    if (!is_probe)
        j->owner = NULL;
    if (is_refused && !is_probe) {
        release_job(s, j);
    } else if (!acquire_hold(s, j, e.cost_ns)) {
        s->result->streams[r->stream].refused++;
        s->result->streams[r->stream].full++;
        release_job(s, j);
    } else {
        s->result->admitted += !is_probe;
        j->backlog_ns = e.backlog_ns;
        j->stage_ns[STAGE_FORM] = admission_expected_wait_ns(&e) + e.run_ns;
        j->stage_ns[STAGE_PARSE] = e.wait_ns + e.run_ns; /* to be compared with the truth */
        model_queue *q = dispatch_queue(&s->dispatch, j->model);
        bool is_in = q != NULL && dispatch_push(&s->dispatch, q, j);
        assert(is_in);
        (void)is_in;
    }
    s->decide_ns += clock_now_ns() - start_ns;
}

/* True time of what device `v` was given, in a bucket that holds rows x longest. */
static double batch_time_ns(const sim_model *m, sim_device *v, int64_t rows, int64_t longest)
{
    if (!m->is_ragged) {
        double ns = sim_time_ns(m, rows, longest, &v->tokens);
        v->squares = v->tokens * up(sim_sequences, SIM_SEQUENCES, longest);
        return ns;
    }
    v->tokens = v->squares = 0;
    for (int i = 0; i < v->count; i++) {
        v->tokens += v->members[i].length;
        v->squares += (int64_t)v->members[i].length * v->members[i].length;
    }
    return m->fixed_ns + m->token_ns * (double)v->tokens + m->square_ns * (double)v->squares;
}

static void start(sim *s, int d, int model_index, int64_t rows, int64_t longest, double real)
{
    sim_device *v = &s->devices[d];
    const sim_model *m = &s->config->models[model_index];
    double ns = batch_time_ns(m, v, rows, longest);
    ns *= 1 + s->config->noise * sim_normal(&s->random);
    v->begun_ns = s->now_ns;
    v->free_ns = s->now_ns + (uint64_t)(ns > 1000 ? ns : 1000);
    v->is_busy = true;
    v->model = model_index;
    s->computed += (double)v->tokens;
    s->real += real;
    s->result->batches++;
    s->result->rows += v->count;
    s->result->busy += (double)(v->free_ns - s->now_ns);
    for (int i = 0; i < v->count; i++) {
        sim_stream_result *to = &s->result->streams[v->members[i].stream];
        to->device_ns += (double)(v->free_ns - s->now_ns) * v->members[i].length / real;
        uint64_t wait_ns = s->now_ns - v->members[i].arrival_ns;
        to->wait_max_ns = wait_ns > to->wait_max_ns ? wait_ns : to->wait_max_ns;
    }
    atomic_fetch_add(&s->admission.busy, 1);
}

static void drop_chain(sim *s, job *chain)
{
    for (job *j = chain, *next; j != NULL; j = next) {
        next = j->next;
        sim_request r = request_of(j);
        give_up(s, &r);
        if (!r.is_probe) /* it was not admitted by the limit that would be cut */
            admission_learn_end(&s->admission, j, false, s->now_ns);
        hold_release(&s->admission.backlog, &j->hold, 1);
        release_job(s, j);
    }
}

static void penstock_next(sim *s, int d)
{
    sim_device *v = &s->devices[d];
    batch_member members[MEMBERS_MAX];
    dispatch_batch b = {
        .members = members, .capacity = MEMBERS_MAX, .attribution = &v->attribution};
    bool is_healthy[SIM_DEVICES_MAX];
    for (int i = 0; i < s->config->device_count; i++)
        is_healthy[i] = !s->devices[i].is_lost;
    placement_devices devices = {.count = s->config->device_count,
                                 .cpu = -1,
                                 .is_healthy = is_healthy,
                                 .fallback = FALLBACK_ON_FAILURE};
    dispatch_request r = {
        .now_ns = s->now_ns, .device_index = d, .workers = alive(s), .devices = &devices};
    uint64_t start_ns = clock_now_ns();
    dispatch_next(&s->dispatch, &r, &b);
    s->decide_ns += clock_now_ns() - start_ns;
    drop_chain(s, b.overdue);
    v->until_ns = b.action == POLICY_WAIT ? b.until_ns : UINT64_MAX;
    if (b.action != POLICY_RUN)
        return;
    double real = 0;
    v->count = b.count;
    v->costs_ns = 0;
    v->bucket = b.bucket;
    device_bucket shape = b.queue->model->buckets[b.bucket].shape;
    for (int i = 0; i < b.count; i++) {
        job *j = members[i].job;
        v->members[i] = request_of(j);
        real += (double)j->length;
        v->costs_ns += hold_release(&s->admission.backlog, &j->hold, 1);
        v->jobs[i] = j;
        s->estimate_errors += fabs((double)j->stage_ns[STAGE_PARSE] -
                                   (double)(s->now_ns + b.expected_ns - j->stage_ns[STAGE_ADMIT]));
    }
    int model_index = b.queue->model->index;
    start(s, d, model_index, shape.batch, shape.sequence, real); /* the bucket as chosen */
}

static void penstock_done(sim *s, int d)
{
    sim_device *v = &s->devices[d];
    uint64_t took_ns = v->free_ns - v->begun_ns;
    const model *m = &s->models[v->model];
    dispatch_settle(&s->dispatch, &v->attribution, took_ns);
    latency_observe(m->latency, d, v->bucket,
                    (latency_work){m->buckets[v->bucket].shape.batch, v->tokens, v->squares},
                    took_ns, s->now_ns);
    admission_learn(&s->admission, v->costs_ns, took_ns);
    for (int i = 0; i < v->count; i++) {
        job *j = v->jobs[i];
        if (!v->members[i].is_probe)
            admission_learn_end(&s->admission, j, v->free_ns <= j->deadline_ns, v->free_ns);
        release_job(s, j);
    }
}

/* Takes those out of `pending` that a baseline would see fail. */
static void drop_late(sim *s)
{
    if (s->config->scheduler == SIM_WINDOW)
        return; /* it knows no deadlines */
    int kept = 0;
    for (int i = 0; i < s->pending_count; i++) {
        const sim_request *r = &s->pending[i];
        uint64_t least_ns = 0;
        if (s->config->scheduler == SIM_ORACLE)
            least_ns = (uint64_t)sim_time_ns(
                &s->config->models[s->config->streams[r->stream].model], 1, r->length, NULL);
        if (r->deadline_ns != UINT64_MAX && r->deadline_ns < s->now_ns + least_ns)
            give_up(s, r);
        else
            s->pending[kept++] = *r;
    }
    s->pending_count = kept;
}

static void baseline_next(sim *s, int d)
{
    sim_device *v = &s->devices[d];
    static int taken[PENDING_MAX];
    drop_late(s);
    v->until_ns = UINT64_MAX;
    if (s->pending_count == 0)
        return;
    int n =
        sim_baseline_next(s->config, s->pending, s->pending_count, s->now_ns, taken, &v->until_ns);
    if (n == 0)
        return;
    assert(n <= MEMBERS_MAX);
    int64_t longest = 0;
    double real = 0;
    v->count = n;
    for (int i = 0; i < n; i++) {
        v->members[i] = s->pending[taken[i]];
        s->pending[taken[i]].length = -1;
        real += v->members[i].length;
        longest = v->members[i].length > longest ? v->members[i].length : longest;
    }
    int kept = 0;
    for (int i = 0; i < s->pending_count; i++)
        if (s->pending[i].length >= 0)
            s->pending[kept++] = s->pending[i];
    s->pending_count = kept;
    start(s, d, s->config->streams[v->members[0].stream].model, n, longest, real);
}

static void offer_devices(sim *s)
{
    /* Each idle device asks; which one is first makes no difference: they are alike. */
    for (int d = 0; d < s->config->device_count; d++) {
        sim_device *v = &s->devices[d];
        v->is_lost = d == s->config->lost_device && s->now_ns >= s->lost_from_ns &&
                     s->now_ns < s->lost_until_ns;
        if (v->is_busy || v->is_lost)
            continue;
        if (s->config->scheduler == SIM_PENSTOCK)
            penstock_next(s, d);
        else
            baseline_next(s, d);
    }
}

/* The next thing that happens, not counting arrivals. */
static uint64_t next_event(const sim *s)
{
    uint64_t at_ns = UINT64_MAX;
    for (int d = 0; d < s->config->device_count; d++) {
        const sim_device *v = &s->devices[d];
        uint64_t own_ns = v->is_busy ? v->free_ns : v->until_ns;
        if (v->is_lost && !v->is_busy)
            own_ns = s->lost_until_ns;
        at_ns = own_ns < at_ns ? own_ns : at_ns;
    }
    return at_ns;
}

static void complete(sim *s)
{
    for (int d = 0; d < s->config->device_count; d++) {
        sim_device *v = &s->devices[d];
        if (!v->is_busy || v->free_ns > s->now_ns)
            continue;
        v->is_busy = false;
        atomic_fetch_sub(&s->admission.busy, 1);
        for (int i = 0; i < v->count; i++)
            finish(s, &v->members[i], v->free_ns);
        if (s->config->scheduler == SIM_PENSTOCK)
            penstock_done(s, d);
    }
}

static bool has_waiting(const sim *s)
{
    bool has_rows = false;
    dispatch_deadline(&s->dispatch, &has_rows);
    return has_rows || s->pending_count > 0;
}

static void prepare(sim *s)
{
    const sim_config *c = s->config;
    for (int d = 0; d < c->device_count; d++) {
        s->devices[d].base = (device){.name = "simulated", .kind = "simulated", .slots = 1};
        s->devices[d].until_ns = UINT64_MAX;
        s->device_list[d] = &s->devices[d].base;
    }
    dispatch_init(&s->dispatch, c->device_count, c->tenant_count, c->tenant_weights);
    admission_init(&s->admission, c->tenant_count, c->tenant_weights);
    for (int i = 0; i < c->model_count; i++)
        make_model(s, i);
    if (c->scheduler != SIM_PENSTOCK)
        s->pending = malloc(PENDING_MAX * sizeof *s->pending);
    double span_ns = (double)c->requests / c->rate * 1e9;
    s->lost_from_ns = (uint64_t)(span_ns / 3);
    s->lost_until_ns = (uint64_t)(span_ns * 2 / 3);
}

static void run(sim *s)
{
    sim_trace trace;
    sim_request r;
    sim_trace_init(&trace, s->config);
    bool has_arrival = sim_trace_next(&trace, &r);
    for (;;) {
        uint64_t event_ns = next_event(s);
        if (!has_arrival && event_ns == UINT64_MAX) {
            if (!has_waiting(s))
                break;
            event_ns = s->now_ns + 1000000; /* late jobs are dropped at a decision */
        }
        if (has_arrival && r.arrival_ns <= event_ns) {
            s->now_ns = r.arrival_ns;
            s->result->offered++;
            s->result->offered_by_length[cell_of(r.length)]++;
            s->result->streams[r.stream].offered++;
            if (s->config->scheduler == SIM_PENSTOCK)
                penstock_arrive(s, &r);
            else if (s->pending_count < PENDING_MAX)
                s->pending[s->pending_count++] = r;
            else
                give_up(s, &r);
            has_arrival = sim_trace_next(&trace, &r);
            s->end_ns = s->now_ns;
            bool has_idle = false;
            for (int d = 0; d < s->config->device_count; d++)
                has_idle |= !s->devices[d].is_busy;
            if (has_idle)
                offer_devices(s);
            continue;
        }
        s->now_ns = event_ns;
        complete(s);
        offer_devices(s);
    }
}

void sim_run(const sim_config *c, sim_result *out)
{
    sim *s = calloc(1, sizeof *s);
    assert(s != NULL && c->device_count <= SIM_DEVICES_MAX);
    memset(out, 0, sizeof *out);
    s->config = c;
    s->result = out;
    s->random = c->seed * 104729 + 5;
    prepare(s);
    run(s);
    out->seconds = (double)s->end_ns / 1e9;
    out->goodput = (double)out->met / out->seconds;
    out->attainment = (double)out->met / (double)out->offered;
    out->waste = s->computed > 0 ? 1 - s->real / s->computed : 0;
    out->busy /= out->seconds * 1e9 * c->device_count;
    out->decide_ns = (double)s->decide_ns / (double)out->offered;
    if (out->admitted > 0)
        out->estimate_error = s->estimate_errors / (double)out->admitted;
    dispatch_dispose(&s->dispatch);
    for (int i = 0; i < c->model_count; i++)
        latency_destroy(s->models[i].latency);
    for (job *j = s->free_jobs, *after; j != NULL; j = after) {
        after = j->next;
        free(j);
    }
    free(s->pending);
    free(s);
}

double sim_goodput_at(sim_config *c, double attainment, double low, double high, sim_result *at)
{
    sim_result *r = calloc(1, sizeof *r);
    double best = 0;
    assert(r != NULL);
    for (int i = 0; i < 9; i++) {
        c->rate = (low + high) / 2;
        sim_run(c, r);
        if (r->attainment >= attainment) {
            low = c->rate;
            best = r->goodput;
            if (at)
                *at = *r;
        } else {
            high = c->rate;
        }
    }
    c->rate = low;
    free(r);
    return best;
}
