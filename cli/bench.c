/* penstock bench: what the engine in this process does with sequences of token ids, without HTTP.
 * Two runs: slots that take batches from the whole file, as under load (throughput), and sequences
 * one at a time, each alone on all threads (latency). */
#include <assert.h>
#include <getopt.h>
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
#include "cli/model.h"

#define BATCH_DEFAULT 32
#define BATCH_MAX 1024
#define THREADS_MAX 64 /* slots that this command drives */
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
    command_model opened;
    device *cpu; /* of `opened`, as is: */
    const model *m;
    arena memory;
    bench_row *rows;
    size_t row_count;
    int64_t tokens, length_max;
    device_program *ragged;     /* of any shape; or, where the model is no encoder: */
    device_program **by_length; /* [length_max + 1], batches of one row */
    _Atomic uint64_t next;
    uint64_t end_ns;
    _Atomic uint64_t done_rows, done_tokens;
    _Atomic int failure;
    char message[STATUS_MESSAGE_BYTES_MAX];
} bench;

static void print_help(FILE *out)
{
    fputs("usage: penstock bench --model DIR --sequences FILE.jsonl [OPTION...]\n\n"
          "Runs the engine in this process, without HTTP, on sequences of token ids: each line of\n"
          "FILE.jsonl is one array of ids. First in batches, as under load, then one at a time.\n\n"
          "  --model DIR          a Hugging Face directory, or one with model.onnx\n"
          "  --sequences FILE     one JSON array of token ids a line\n"
          "  --precision P        fp32 (default), bf16 or int8\n"
          "  --threads N          cores to use (default: all, at most 64)\n"
          "  --batch N            sequences of one batch (default 32, at most 1024)\n"
          "  --seconds S          length of each of the two runs (default 3)\n"
          "  --cpu-level LEVEL    scalar, avx2, avxvnni, avx512, avx512vnni or amx: at most that\n"
          "  --cache DIR          keep packed weights there\n"
          "  --accuracy           compare every answer with fp32: cosine of mean-pooled outputs\n"
          "  --json               one JSON object\n"
          "  --help               this text\n",
          out);
}

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
            s = status_fail(STATUS_INVALID_ARGUMENT, "%s, line %zu: no array of token ids",
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
        s = status_fail(STATUS_INVALID_ARGUMENT, "%s holds no sequence", b->options->sequences);
    return s;
}

/* `count` rows on that slot; one row only where there is no ragged program. */
static status execute(bench *b, int slot, const bench_row *const *rows, int count)
{
    device_segment segments[1024];
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
    const device_interface *on = b->cpu->interface;
    device_program *program;
    device_bucket shape = {b->options->batch, b->length_max};
    status s = on->compile(b->cpu, &b->m->on_device, shape, &program);
    if (s)
        return s;
    if (program->layout == DEVICE_RAGGED) {
        b->ragged = program;
        return STATUS_OK;
    }
    on->release(b->cpu, program);
    b->by_length = calloc((size_t)b->length_max + 1, sizeof *b->by_length);
    for (size_t i = 0; !s && b->by_length && i < b->row_count; i++) {
        device_program **at = &b->by_length[b->rows[i].length];
        if (!*at)
            s = on->compile(b->cpu, &b->m->on_device, (device_bucket){1, b->rows[i].length}, at);
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
    bench_slot *l = context;
    bench *b = l->bench;
    const bench_row *rows[1024];
    int most = b->ragged ? b->options->batch : 1;
    do {
        uint64_t tokens = 0;
        uint64_t at = atomic_fetch_add(&b->next, (uint64_t)most);
        for (int i = 0; i < most; i++) {
            rows[i] = &b->rows[(at + (uint64_t)i) % b->row_count];
            tokens += (uint64_t)rows[i]->length;
        }
        status s = execute(b, l->number, rows, most);
        if (s) {
            int none = STATUS_OK;
            if (atomic_compare_exchange_strong(&b->failure, &none, (int)s))
                snprintf(b->message, sizeof b->message, "%s", status_message());
            return NULL;
        }
        atomic_fetch_add(&b->done_rows, (uint64_t)most);
        atomic_fetch_add(&b->done_tokens, tokens);
    } while (clock_now_ns() < b->end_ns);
    return NULL;
}

/* Seconds that the run took. */
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

/* Each sequence alone, all of them at least once. */
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

/* Cosines to FP32 over all sequences, of the first output. */
typedef struct bench_accuracy {
    double mean, lowest;
} bench_accuracy;

/* The mean over all but the last axis, of [1, length, width] or [1, width]. */
static void pool(const tensor *t, double *out)
{
    int64_t width = t->dims[t->rank - 1], count = tensor_count(t);
    memset(out, 0, (size_t)width * sizeof *out);
    for (int64_t i = 0; i < count; i++)
        out[i % width] += tensor_get_number(t, i);
}

static status compare_with_fp32(bench *b, bench_accuracy *out)
{
    device_model exact = b->m->on_device;
    exact.precision = DEVICE_FP32;
    device_program *reference = NULL, *ragged = b->ragged;
    const device_interface *on = b->cpu->interface;
    device_bucket shape = {1, b->length_max};
    size_t width = (size_t)b->rows[0].outputs[0].dims[b->rows[0].outputs[0].rank - 1];
    double *pooled = malloc(2 * width * sizeof *pooled), sum = 0;
    *out = (bench_accuracy){0, 1};
    status s = pooled ? on->compile(b->cpu, &exact, shape, &reference)
                      : status_fail(STATUS_OUT_OF_MEMORY, "no memory for a comparison");
    for (size_t i = 0; !s && i < b->row_count; i++) {
        const bench_row *row = &b->rows[i];
        double both = 0, squares[2] = {0};
        for (int k = 0; !s && k < 2; k++) {
            b->ragged = k ? ragged : reference;
            s = execute(b, 0, &row, 1);
            pool(&row->outputs[0], pooled + (size_t)k * width);
        }
        for (size_t k = 0; k < width; k++) {
            both += pooled[k] * pooled[width + k];
            squares[0] += pooled[k] * pooled[k];
            squares[1] += pooled[width + k] * pooled[width + k];
        }
        double cosine = both / sqrt(squares[0] * squares[1]);
        sum += cosine;
        out->lowest = fmin(out->lowest, cosine);
    }
    out->mean = sum / (double)b->row_count;
    b->ragged = ragged;
    if (reference)
        on->release(b->cpu, reference);
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

/* What there is to print. */
typedef struct bench_result {
    double tokens_per_s, rows_per_s, peak_fraction;
    double tokens_per_cpu_s; /* with a neighbour on the machine, the steadier figure */
    bench_latency alone;
    bench_accuracy accuracy;
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
    printf("batches    %.0f real tokens/s (%.0f a second of CPU), %.0f sequences/s, %.0f%% of the "
           "peak\n",
           r->tokens_per_s, r->tokens_per_cpu_s, r->rows_per_s, 100 * r->peak_fraction);
    printf("alone      p50 %.3f ms, p95 %.3f, p99 %.3f, max %.3f; %.0f tokens/s\n", alone->p50,
           alone->p95, alone->p99, alone->max, alone->tokens_per_s);
    if (b->options->has_accuracy)
        printf("to fp32    cosine mean %.5f, lowest %.5f\n", r->accuracy.mean, r->accuracy.lowest);
    printf("how        %s\n", how);
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
    const device_interface *on = b->cpu ? b->cpu->interface : NULL;
    if (b->ragged)
        on->release(b->cpu, b->ragged);
    for (int64_t i = 0; b->by_length && i <= b->length_max; i++)
        if (b->by_length[i])
            on->release(b->cpu, b->by_length[i]);
    command_close_model(&b->opened);
    arena_dispose(&b->memory);
    free(b->by_length);
    free(b->rows);
}

static int run(const bench_options *o)
{
    bench b = {.options = o};
    const command_model_options options = {
        .path = o->model,
        .precision = o->precision,
        .batch_max = 1,
        .cpu = {.threads = o->threads, .level = o->level, .cache_folder = o->cache}};
    log_configure(LOG_WARNING, LOG_FORMAT_AUTO);
    status s = command_open_model(&options, &b.opened);
    b.cpu = b.opened.cpu;
    b.m = b.opened.loaded;
    if (!s)
        s = measure(&b);
    if (s)
        fprintf(stderr, "penstock bench: %s\n", status_message());
    release(&b);
    return s ? 1 : 0;
}

static status read_flags(int argc, char **argv, bench_options *o, bool *wants_help)
{
    static const struct option options[] = {{"model", required_argument, NULL, 'm'},
                                            {"sequences", required_argument, NULL, 's'},
                                            {"precision", required_argument, NULL, 'p'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"batch", required_argument, NULL, 'b'},
                                            {"seconds", required_argument, NULL, 'd'},
                                            {"cpu-level", required_argument, NULL, 'l'},
                                            {"cache", required_argument, NULL, 'c'},
                                            {"accuracy", no_argument, NULL, 'a'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        status s = STATUS_OK;
        if (c == 'h') {
            *wants_help = true;
            return STATUS_OK;
        }
        if (c == 'm')
            o->model = optarg;
        else if (c == 's')
            o->sequences = optarg;
        else if (c == 'p')
            s = command_read_precision(optarg, &o->precision);
        else if (c == 't')
            s = command_read_whole("--threads", optarg, 1, THREADS_MAX, &o->threads);
        else if (c == 'b')
            s = command_read_whole("--batch", optarg, 1, BATCH_MAX, &o->batch);
        else if (c == 'd')
            s = command_read_number("--seconds", optarg, 0.01, SECONDS_MAX, &o->seconds);
        else if (c == 'l')
            o->level = optarg;
        else if (c == 'c')
            o->cache = optarg;
        else if (c == 'a')
            o->has_accuracy = true;
        else if (c == 'j')
            o->is_json = true;
        else
            return status_fail(STATUS_INVALID_ARGUMENT, "see penstock bench --help");
        if (s)
            return s;
    }
    if (optind != argc)
        return status_fail(STATUS_INVALID_ARGUMENT, "what is \"%s\"? See penstock bench --help",
                           argv[optind]);
    if (o->model == NULL || o->sequences == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "--model and --sequences are needed; see penstock bench --help");
    return STATUS_OK;
}

int command_bench(int argc, char **argv)
{
    bench_options o = {.batch = BATCH_DEFAULT, .seconds = SECONDS_DEFAULT};
    bool wants_help = false;
    if (read_flags(argc, argv, &o, &wants_help)) {
        fprintf(stderr, "penstock bench: %s\n", status_message());
        return 2;
    }
    if (wants_help) {
        print_help(stdout);
        return 0;
    }
    return run(&o);
}
