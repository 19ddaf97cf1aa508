/* Triton's statistics over gRPC; the quantiles are in GET /v2/models/stats and /metrics. */
#include <stdlib.h>

#include "base/clock.h"
#include "server/protocol/grpc/inference.pb-c.h"
#include "server/request/respond.h"
#include "server/routes/grpc/methods.h"

#define MODELS_MAX 1024
#define SPANS 8

typedef Inference__StatisticDuration duration;

typedef struct model_stats {
    Inference__ModelStatistics stats;
    Inference__InferStatistics inference;
    duration spans[SPANS];
    Inference__InferBatchStatistics batches[RECORD_BATCH_SIZES];
    Inference__InferBatchStatistics *batch_list[RECORD_BATCH_SIZES];
    duration batch_spans[RECORD_BATCH_SIZES][3];
} model_stats;

static duration *fill_span(duration *to, uint64_t count, uint64_t ns)
{
    *to = (duration)INFERENCE__STATISTIC_DURATION__INIT;
    to->count = count;
    to->ns = ns;
    return to;
}

static uint64_t sum(const record_totals *t, stage from, stage to)
{
    uint64_t ns = 0;
    for (int i = from; i <= (int)to; i++)
        ns += t->stage_sum_ns[i];
    return ns;
}

static void fill_batches(model_stats *s, const recorder *r, const model_record *m)
{
    size_t count = 0;
    for (int rows = 1; rows <= RECORD_BATCH_SIZES; rows++) {
        record_batches b;
        if (!record_read_size(r, m, rows, &b))
            continue;
        Inference__InferBatchStatistics *to = s->batch_list[count] = &s->batches[count];
        duration *spans = s->batch_spans[count++];
        *to = (Inference__InferBatchStatistics)INFERENCE__INFER_BATCH_STATISTICS__INIT;
        to->batch_size = (uint64_t)rows;
        to->compute_input = fill_span(&spans[0], b.count, b.input_ns);
        to->compute_infer = fill_span(&spans[1], b.count, b.infer_ns);
        to->compute_output = fill_span(&spans[2], b.count, b.output_ns);
    }
    s->stats.batch_stats = s->batch_list;
    s->stats.n_batch_stats = count;
}

static void fill_spans(model_stats *s, const record_totals *t)
{
    uint64_t n = t->success_count;
    s->inference = (Inference__InferStatistics)INFERENCE__INFER_STATISTICS__INIT;
    s->inference.success = fill_span(&s->spans[0], n, t->success_ns);
    s->inference.fail = fill_span(&s->spans[1], t->failure_count, t->failure_ns);
    s->inference.queue = fill_span(&s->spans[2], n, sum(t, STAGE_QUEUE, STAGE_QUEUE));
    s->inference.compute_input = fill_span(&s->spans[3], n, sum(t, STAGE_FORM, STAGE_PLACE));
    s->inference.compute_infer = fill_span(&s->spans[4], n, sum(t, STAGE_EXECUTE, STAGE_EXECUTE));
    s->inference.compute_output = fill_span(&s->spans[5], n, sum(t, STAGE_SLICE, STAGE_SLICE));
    s->inference.cache_hit = fill_span(&s->spans[6], 0, 0);
    s->inference.cache_miss = fill_span(&s->spans[7], 0, 0);
    s->stats.inference_stats = &s->inference;
}

/* NULL: no memory. */
static Inference__ModelStatistics *make(service *s, const model *m, uint64_t now_ns, arena *memory)
{
    model_stats *to = arena_allocate(memory, sizeof *to);
    const model_record *record = record_of_model(s->recorder, m);
    record_totals t;
    if (to == NULL)
        return NULL;
    record_read_totals(s->recorder, record, &t);
    to->stats = (Inference__ModelStatistics)INFERENCE__MODEL_STATISTICS__INIT;
    to->stats.name = (char *)(uintptr_t)m->name;
    to->stats.version = arena_format(memory, "%lld", (long long)m->version);
    to->stats.last_inference = t.last_ns ? (clock_wall_ns() - (now_ns - t.last_ns)) / 1000000 : 0;
    to->stats.inference_count = t.rows;
    to->stats.execution_count = atomic_load(&m->counters->batches);
    fill_spans(to, &t);
    fill_batches(to, s->recorder, record);
    return to->stats.version != NULL ? &to->stats : NULL;
}

static void reply(request *r, const model **models, int count, arena *memory)
{
    Inference__ModelStatisticsResponse out = INFERENCE__MODEL_STATISTICS_RESPONSE__INIT;
    uint64_t now_ns = clock_now_ns();
    out.model_stats = arena_allocate(memory, (size_t)count * sizeof *out.model_stats + 1);
    bool is_whole = out.model_stats != NULL;
    for (int i = 0; is_whole && i < count; i++) {
        out.model_stats[i] = make(request_service(r), models[i], now_ns, memory);
        is_whole = out.model_stats[i] != NULL;
    }
    out.n_model_stats = (size_t)count;
    if (is_whole)
        method_reply(r, &out.base);
    else
        respond_status(r, STATUS_OUT_OF_MEMORY, "no memory for the response");
}

void method_model_statistics(request *r, const ProtobufCMessage *in, arena *memory)
{
    const Inference__ModelStatisticsRequest *asked = (const Inference__ModelStatisticsRequest *)in;
    const model *one, **models = &one;
    int count = 1;
    if (asked->name[0] != 0) {
        if (!method_find_model(r, asked->name, asked->version, &one))
            return;
    } else {
        models = arena_allocate(memory, MODELS_MAX * sizeof *models);
        count = models != NULL
                    ? repository_ready_models(request_service(r)->models, models, MODELS_MAX)
                    : 0;
        count = count < MODELS_MAX ? count : MODELS_MAX;
    }
    if (models == NULL)
        respond_status(r, STATUS_OUT_OF_MEMORY, "no memory for the response");
    else
        reply(r, models, count, memory);
    for (int i = 0; i < count; i++)
        model_release(models[i]);
}
