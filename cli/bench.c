/* penstock bench: the CPU engine in this process, without HTTP, on sequences of token ids. Two
 * runs: batches on every execution slot (throughput), then one sequence at a time (latency). */
#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/loaded_model.h"
#include "devices/accuracy.h"

#define BATCH_DEFAULT 32
#define BATCH_MAX 1024
#define THREADS_MAX 64 /* of execution slots */
#define SECONDS_DEFAULT 3
#define SECONDS_MAX 3600

typedef struct bench_options {
    const char *model, *sequences, *level, *cache;
    device_precision precision;
    int threads, batch;
    double seconds;
    bool is_json, has_accuracy;
} bench_options;

/* One sequence: a job of one row. */
typedef struct bench_row {
    int64_t length;
    tensor *inputs, *outputs;
} bench_row;

typedef struct bench {
    const bench_options *options;
    loaded_model opened;
    device *cpu; /* of `opened`, as is: */
    const model *m;
    arena memory;
    bench_row *rows;
    size_t row_count;
    int64_t tokens, length_max;
    device_program *ragged;     /* of any shape; NULL if the model is not an encoder; then: */
    device_program **by_length; /* [length_max + 1], for one row each */
    _Atomic uint64_t next;
    uint64_t end_ns;
    _Atomic uint64_t done_rows, done_tokens;
    _Atomic int failure;
    char message[STATUS_MESSAGE_BYTES_MAX];
} bench;

static status make_row(bench *b, const json_t *ids, size_t line, bench_row *row)
{
    const model *m = b->m;
    row->length = (int64_t)json_array_size(ids);
    if (row->length < 1 || row->length > m->batching.sequence_max)
        return status_fail(STATUS_INVALID_ARGUMENT, "line %zu: %lld ids; the model takes 1 to %lld",
                           line, (long long)row->length, (long long)m->batching.sequence_max);
    row->inputs = arena_allocate_zeroed(&b->memory, (size_t)m->input_count, sizeof(tensor));
    row->outputs = arena_allocate_zeroed(&b->memory, (size_t)m->output_count, sizeof(tensor));
    if (!row->inputs || !row->outputs)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for sequences");
    for (int i = 0; i < m->input_count + m->output_count; i++) {
        bool is_output = i >= m->input_count;
        int k = is_output ? i - m->input_count : i;
        const model_tensor *t = is_output ? &m->outputs[k] : &m->inputs[k];
        int64_t dims[TENSOR_RANK_MAX];
        if (!model_tensor_dims(m, is_output, k, 1, row->length, dims))
            return status_fail(STATUS_UNSUPPORTED, "tensor \"%s\": its shape is not known",
                               t->name);
        tensor *to = is_output ? &row->outputs[k] : &row->inputs[k];
        status s = tensor_allocate(to, &b->memory, t->dtype, t->rank, dims);
        if (s)
            return s;
        bool is_types = strstr(t->name, "type") != NULL;
        for (int64_t p = 0; !is_output && p < tensor_count(to) && p < row->length; p++) {
            double id = (double)json_integer_value(json_array_get(ids, (size_t)p));
            tensor_set_number(to, p, t->is_mask ? 1 : is_types ? t->default_value : id);
        }
    }
    return STATUS_OK;
}

static status read_rows(bench *b)
{
    FILE *file = fopen(b->options->sequences, "r");
    if (!file)
        return status_fail(STATUS_NOT_FOUND, "%s: %m", b->options->sequences);
    char *text = NULL;
    size_t capacity = 0, line = 0, room = 0;
    status s = STATUS_OK;
    for (ssize_t n; !s && (n = getline(&text, &capacity, file)) > 0;) {
        line++;
        if (strspn(text, " \t\r\n") == (size_t)n)
            continue;
        json_error_t error;
        json_t *ids = json_loadb(text, (size_t)n, 0, &error);
        if (b->row_count == room) {
            room = room ? 2 * room : 256;
            bench_row *more = realloc(b->rows, room * sizeof *more);
            if (!more) {
                json_decref(ids);
                s = status_fail(STATUS_OUT_OF_MEMORY, "no memory for sequences");
                break;
            }
            b->rows = more;
        }
        if (!json_is_array(ids))
            s = status_fail(STATUS_INVALID_ARGUMENT, "%s, line %zu: not a JSON array of token ids",
                            b->options->sequences, line);
        else
            s = make_row(b, ids, line, &b->rows[b->row_count]);
        json_decref(ids);
        if (s)
            break;
        const bench_row *row = &b->rows[b->row_count++];
        b->tokens += row->length;
        b->length_max = row->length > b->length_max ? row->length : b->length_max;
    }
    free(text);
    fclose(file);
    if (!s && b->row_count == 0)
        s = status_fail(STATUS_INVALID_ARGUMENT, "%s contains no sequence", b->options->sequences);
    return s;
}

/* Executes `count` rows on that slot; one row if there is no ragged program. */
static status execute(bench *b, int slot, const bench_row *const *rows, int count)
{
    device_segment segments[BATCH_MAX];
    for (int i = 0; i < count; i++)
        segments[i] = (device_segment){1, rows[i]->length, rows[i]->inputs, rows[i]->outputs};
    device_batch batch = {.segments = segments,
                          .segment_count = count,
                          .inputs = rows[0]->inputs,
                          .outputs = rows[0]->outputs};
    device_program *program = b->ragged ? b->ragged : b->by_length[rows[0]->length];
    return b->cpu->interface->execute(b->cpu, program, slot, &batch);
}

static status compile(bench *b)
{
    const device_interface *interface = b->cpu->interface;
    device_program *program;
    device_bucket shape = {b->options->batch, b->length_max};
    status s = interface->compile(b->cpu, &b->m->on_device, shape, &program);
    if (s)
        return s;
    if (program->layout == DEVICE_RAGGED) {
        b->ragged = program;
        return STATUS_OK;
    }
    interface->release(b->cpu, program);
    b->by_length = calloc((size_t)b->length_max + 1, sizeof *b->by_length);
    for (size_t i = 0; !s && b->by_length && i < b->row_count; i++) {
        device_program **at = &b->by_length[b->rows[i].length];
        if (!*at)
            s = interface->compile(b->cpu, &b->m->on_device, (device_bucket){1, b->rows[i].length},
                                   at);
    }
    return b->by_length ? s : status_fail(STATUS_OUT_OF_MEMORY, "no memory for programs");
}

typedef struct bench_slot {
    bench *bench;
    pthread_t thread;
    int number;
} bench_slot;

static void *run_slot(void *context)
{
    bench_slot *slot = context;
    bench *b = slot->bench;
    const bench_row *rows[BATCH_MAX];
    int rows_per_batch = b->ragged ? b->options->batch : 1;
    do {
        uint64_t tokens = 0;
        uint64_t at = atomic_fetch_add(&b->next, (uint64_t)rows_per_batch);
        for (int i = 0; i < rows_per_batch; i++) {
            rows[i] = &b->rows[(at + (uint64_t)i) % b->row_count];
            tokens += (uint64_t)rows[i]->length;
        }
        status s = execute(b, slot->number, rows, rows_per_batch);
        if (s) {
            int none = STATUS_OK;
            if (atomic_compare_exchange_strong(&b->failure, &none, (int)s))
                snprintf(b->message, sizeof b->message, "%s", status_message());
            return NULL;
        }
        atomic_fetch_add(&b->done_rows, (uint64_t)rows_per_batch);
        atomic_fetch_add(&b->done_tokens, tokens);
    } while (clock_now_ns() < b->end_ns);
    return NULL;
}

/* Returns the seconds that the run took. */
static double run_slots(bench *b, double seconds)
{
    bench_slot slots[THREADS_MAX];
    int count = b->cpu->slots < THREADS_MAX ? b->cpu->slots : THREADS_MAX;
    uint64_t start_ns = clock_now_ns();
    b->end_ns = start_ns + (uint64_t)(seconds * 1e9);
    atomic_store(&b->done_rows, 0);
    atomic_store(&b->done_tokens, 0);
    for (int i = 0; i < count; i++) {
        slots[i] = (bench_slot){.bench = b, .number = i};
        int failure = pthread_create(&slots[i].thread, NULL, run_slot, &slots[i]);
        assert(!failure);
        (void)failure;
    }
    for (int i = 0; i < count; i++)
        pthread_join(slots[i].thread, NULL);
    return (double)(clock_now_ns() - start_ns) / 1e9;
}

typedef struct bench_latency {
    double p50, p90, p95, p99, max, mean; /* ms */
    double tokens_per_s;
} bench_latency;

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Runs one sequence at a time, and every sequence at least once. */
static status run_alone(bench *b, bench_latency *out)
{
    uint64_t start_ns = clock_now_ns(), sum = 0, tokens = 0;
    uint64_t limit_ns = start_ns + (uint64_t)(b->options->seconds * 1e9);
    size_t count = 0, room = 1 << 20;
    uint64_t *times = malloc(room * sizeof *times);
    if (!times)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for latencies");
    status s = STATUS_OK;
    while (!s && count < room && (count < b->row_count || clock_now_ns() < limit_ns)) {
        const bench_row *row = &b->rows[count % b->row_count];
        uint64_t from_ns = clock_now_ns();
        s = execute(b, 0, &row, 1);
        times[count] = clock_now_ns() - from_ns;
        tokens += (uint64_t)row->length;
        sum += times[count++];
    }
    if (!s) {
        qsort(times, count, sizeof *times, compare_times);
        *out = (bench_latency){.p50 = (double)times[count / 2] / 1e6,
                               .p90 = (double)times[count * 9 / 10] / 1e6,
                               .p95 = (double)times[count * 95 / 100] / 1e6,
                               .p99 = (double)times[count * 99 / 100] / 1e6,
                               .max = (double)times[count - 1] / 1e6,
                               .mean = (double)sum / 1e6 / (double)count,
                               .tokens_per_s = (double)tokens / ((double)sum / 1e9)};
    }
    free(times);
    return s;
}

/* The mean over all but the last axis of [1, length, width] or [1, width]. */
static void average_tokens(const tensor *t, float *out)
{
    int64_t width = t->dims[t->rank - 1], count = tensor_count(t) / width;
    for (int64_t k = 0; k < width; k++) {
        double sum = 0;
        for (int64_t i = 0; i < count; i++)
            sum += tensor_get_number(t, i * width + k);
        out[k] = (float)(sum / (double)count);
    }
}

/* Of the first output, over all sequences. */
static status compare_with_fp32(bench *b, device_accuracy *out)
{
    device_model exact = b->m->on_device;
    exact.precision = DEVICE_FP32;
    device_program *reference = NULL, *ragged = b->ragged;
    const device_interface *interface = b->cpu->interface;
    device_bucket shape = {1, b->length_max};
    size_t width = (size_t)b->rows[0].outputs[0].dims[b->rows[0].outputs[0].rank - 1];
    float *pooled = malloc(2 * width * sizeof *pooled);
    device_comparison c = {0};
    status s = pooled ? interface->compile(b->cpu, &exact, shape, &reference)
                      : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a comparison");
    for (size_t i = 0; !s && i < b->row_count; i++) {
        const bench_row *row = &b->rows[i];
        for (int k = 0; !s && k < 2; k++) {
            b->ragged = k ? ragged : reference;
            s = execute(b, 0, &row, 1);
            average_tokens(&row->outputs[0], pooled + (size_t)k * width);
        }
        device_comparison_add(&c, pooled, pooled + width, width);
    }
    if (!s)
        *out = device_comparison_read(&c, width);
    b->ragged = ragged;
    if (reference)
        interface->release(b->cpu, reference);
    free(pooled);
    return s;
}

static double cpu_seconds(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

typedef struct bench_result {
    double tokens_per_s, rows_per_s, peak_fraction;
    double tokens_per_cpu_s; /* steadier on a shared machine */
    bench_latency alone;
    device_accuracy accuracy;
} bench_result;

static void print_result(const bench *b, const bench_result *r)
{
    const bench_latency *alone = &r->alone;
    char how[4096] = "";
    if (b->cpu->interface->explain && b->ragged)
        b->cpu->interface->explain(b->cpu, b->ragged, how, sizeof how);
    if (b->options->is_json) {
        json_t *o = json_pack(
            "{s:s, s:s, s:i, s:i, s:i, s:f, s:f, s:f, s:{s:f, s:f, s:f, s:f, s:f, s:f}, s:f, s:f, "
            "s:b, s:s, s:f}",
            "model", b->options->model, "precision", device_precision_names[b->options->precision],
            "threads", b->cpu->slots, "sequences", (int)b->row_count, "batch",
            b->ragged ? b->options->batch : 1, "real_tokens_per_s", r->tokens_per_s,
            "sequences_per_s", r->rows_per_s, "tokens_per_cpu_s", r->tokens_per_cpu_s, "latency_ms",
            "p50", alone->p50, "p90", alone->p90, "p95", alone->p95, "p99", alone->p99, "max",
            alone->max, "mean", alone->mean, "alone_tokens_per_s", alone->tokens_per_s,
            "peak_fraction", r->peak_fraction, "ragged", b->ragged != NULL, "explanation", how,
            "ready_ms", (double)(b->m->load_ns + b->m->warm_up_ns) / 1e6);
        if (b->options->has_accuracy)
            json_object_set_new(
                o, "cosine_to_fp32",
                json_pack("{s:f, s:f}", "mean", r->accuracy.mean, "min", r->accuracy.lowest));
        json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(8));
        putchar('\n');
        json_decref(o);
        return;
    }
    printf("model      %s in %s, %d threads; %s\n", b->options->model,
           device_precision_names[b->options->precision], b->cpu->slots,
           b->ragged ? "ragged" : "padded, one row at a time");
    printf("batches    %.0f tokens/s (%.0f per second of CPU time), %.0f sequences/s, %.0f%% of "
           "peak\n",
           r->tokens_per_s, r->tokens_per_cpu_s, r->rows_per_s, 100 * r->peak_fraction);
    printf("alone      p50 %.3f ms, p95 %.3f ms, p99 %.3f ms, max %.3f ms; %.0f tokens/s\n",
           alone->p50, alone->p95, alone->p99, alone->max, alone->tokens_per_s);
    if (b->options->has_accuracy)
        printf("accuracy   cosine similarity to fp32: mean %.5f, min %.5f\n", r->accuracy.mean,
               r->accuracy.lowest);
    printf("plan       %s\n", how);
}

static status measure(bench *b)
{
    bench_result r = {0};
    status s = read_rows(b);
    if (!s)
        s = compile(b);
    if (!s && b->options->has_accuracy && b->ragged)
        s = compare_with_fp32(b, &r.accuracy);
    if (s)
        return s;
    device_status before, after;
    run_slots(b, 0.2); /* warm */
    b->cpu->interface->describe(b->cpu, &before);
    double cpu_before = cpu_seconds(), seconds = run_slots(b, b->options->seconds);
    double cpu = cpu_seconds() - cpu_before;
    b->cpu->interface->describe(b->cpu, &after);
    if (atomic_load(&b->failure))
        return status_fail((status)atomic_load(&b->failure), "%s", b->message);
    r.tokens_per_s = (double)atomic_load(&b->done_tokens) / seconds;
    r.rows_per_s = (double)atomic_load(&b->done_rows) / seconds;
    r.tokens_per_cpu_s = (double)atomic_load(&b->done_tokens) / cpu;
    r.peak_fraction = (after.peak_seconds - before.peak_seconds) / (seconds * b->cpu->slots);
    s = run_alone(b, &r.alone);
    if (!s)
        print_result(b, &r);
    return s;
}

static void release(bench *b)
{
    const device_interface *interface = b->cpu ? b->cpu->interface : NULL;
    if (b->ragged)
        interface->release(b->cpu, b->ragged);
    for (int64_t i = 0; b->by_length && i <= b->length_max; i++)
        if (b->by_length[i])
            interface->release(b->cpu, b->by_length[i]);
    loaded_model_close(&b->opened);
    arena_dispose(&b->memory);
    free(b->by_length);
    free(b->rows);
}

static int run(const bench_options *o)
{
    bench b = {.options = o};
    const loaded_model_options options = {
        .path = o->model,
        .precision = o->precision,
        .batch_max = 1,
        .cpu = {.threads = o->threads, .level = o->level, .cache_folder = o->cache}};
    log_configure(LOG_WARNING, LOG_FORMAT_AUTO);
    status s = loaded_model_open(&options, &b.opened);
    b.cpu = b.opened.cpu;
    b.m = b.opened.model;
    if (!s)
        s = measure(&b);
    if (s)
        fprintf(stderr, "penstock bench: %s\n", status_message());
    release(&b);
    return s ? 1 : 0;
}

int command_bench(int argc, char **argv)
{
    bench_options o = {.batch = BATCH_DEFAULT, .seconds = SECONDS_DEFAULT};
    const flag flags[] = {
        flag_required(flag_text("--model", "DIR", "A Hugging Face folder, or one with model.onnx.",
                                &o.model)),
        flag_required(
            flag_text("--sequences", "FILE", "One JSON array of token ids a line.", &o.sequences)),
        flag_precision("fp32 (default), bf16 or int8.", &o.precision),
        flag_integer("--threads", "N", "Threads to use, at most 64; default: one per core.",
                     &o.threads, 1, THREADS_MAX),
        flag_integer("--batch", "N", "Sequences in a batch, 1 to 1024; default: 32.", &o.batch, 1,
                     BATCH_MAX),
        flag_number("--seconds", "S", "Length of each run in seconds; default: 3.", &o.seconds,
                    0.01, SECONDS_MAX),
        flag_text("--cpu-level", "LEVEL",
                  "Highest instruction set: scalar, avx2, avxvnni, avx512, avx512vnni or amx.",
                  &o.level),
        flag_text("--cache", "DIR", "Folder that keeps packed weights.", &o.cache),
        flag_switch(
            "--accuracy",
            "Also compare every result with fp32: cosine similarity of mean-pooled outputs.",
            &o.has_accuracy),
        flag_switch("--json", "Print one JSON object.", &o.is_json),
    };
    const flags_usage usage = {
        .command = "bench",
        .synopsis = "--model DIR --sequences FILE [OPTION...]",
        .description = "Measures the CPU engine in this process, without HTTP. The first run "
                       "executes batches on all threads (throughput), the second one sequence at "
                       "a time (latency).",
        .flags = flags,
        .count = sizeof flags / sizeof *flags};
    int code = flags_parse(&usage, argc, argv);
    return code != FLAGS_OK ? code : run(&o);
}
