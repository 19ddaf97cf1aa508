/* penstock compile: compiles programs for a TPU on a machine without one, into the compile cache
 * from which a server on that TPU starts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/loaded_model.h"
#include "devices/device.h"
#include "devices/pjrt/plugin/ahead_of_time.h"
#include "devices/pjrt/program.h"
#include "devices/pjrt/protocol/hlo_summary.h"
#include "devices/pjrt/protocol/signature.h"

typedef struct target_facts {
    const char *prefix;          /* of the topology */
    double clock_hz;             /* of the tensor core, to turn cycles into seconds */
    double bf16_flops, int8_ops; /* published peaks per chip */
    const char *generation;
} target_facts;

/* Peaks as on Google Cloud's pages on TPU system architecture; v4's int8 rate is its bf16 rate. The
 * clock turns the compiler's estimated cycles into seconds. */
static const target_facts targets[] = {
    {"v4", 1.05e9, 275e12, 275e12, "v4"},
    {"v5e", 1.5e9, 197e12, 394e12, "v5e"},
    {"v5p", 1.75e9, 459e12, 918e12, "v5p"},
    {"v6e", 1.75e9, 918e12, 1836e12, "v6e"},
};

#define SIZE_LARGEST 1000000 /* of a batch or a sequence */

typedef struct compile_options {
    const char *model, *target, *cache, *plugin;
    device_precision precision;
    flag_list batch, sequence; /* empty: the model's own */
    bool is_json;
} compile_options;

typedef struct totals {
    int compiled, already, failed;
    double seconds;
} totals;

static const target_facts *facts_of(const char *topology)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        size_t bytes = strlen(targets[i].prefix);
        if (strncmp(topology, targets[i].prefix, bytes) == 0 && topology[bytes] == ':')
            return &targets[i];
    }
    return NULL;
}

/* What the dense layers are computed in, as the compiler left them. */
static const char *arithmetic_of(const device_model *what, const stablehlo_program *program,
                                 const hlo_summary *hlo)
{
    if (what->exported != NULL)
        return "as exported";
    if (hlo->products == 0)
        return "none";
    if (hlo->products_s8 == 0 && hlo->products_bf16 == 0)
        return "fp32";
    if (hlo->products_s8 == 0 && hlo->products_bf16 >= program->dense_count)
        return "bf16";
    bool is_int8 = program->dense_int8_count == program->dense_count &&
                   hlo->products_s8 >= program->dense_count;
    return is_int8 ? "int8" : "mixed";
}

static void print_bucket(const compile_options *o, const device_model *what, device_bucket bucket,
                         const char *state, double seconds, const stablehlo_program *program,
                         const pjrt_ahead_of_time *made, const hlo_summary *hlo,
                         const target_facts *facts)
{
    double run_seconds =
        hlo->estimated_cycles > 0 ? (double)hlo->estimated_cycles / facts->clock_hz : 0;
    double tokens = (double)bucket.batch * (double)(bucket.sequence ? bucket.sequence : 1);
    double peak = o->precision == DEVICE_INT8 ? facts->int8_ops : facts->bf16_flops;
    double rate = run_seconds > 0 ? tokens / run_seconds : 0;
    /* null for exported programs, whose operations are not counted, and for compilers that estimate
     * no cycles. */
    char mfu[24] = "null", percent[24] = "-";
    if (what->exported == NULL && run_seconds > 0) {
        double share = program->flops / run_seconds / peak;
        snprintf(mfu, sizeof mfu, "%.4f", share);
        snprintf(percent, sizeof percent, "%.1f%%", 100 * share);
    }
    const char *precision = what->exported ? "as exported" : device_precision_names[o->precision];
    const char *arithmetic = arithmetic_of(what, program, hlo);
    if (o->is_json)
        printf("{\"target\":\"%s\",\"precision\":\"%s\",\"batch\":%lld,\"sequence\":%lld,"
               "\"packed\":%s,\"arithmetic\":\"%s\",\"state\":\"%s\",\"compile_seconds\":%.3f,"
               "\"code_bytes\":%lld,"
               "\"temporary_bytes\":%lld,\"peak_bytes\":%lld,\"program_bytes\":%zu,"
               "\"estimated_cycles\":%lld,\"unestimated_instructions\":%d,"
               "\"estimated_tokens_per_s\":%.0f,\"estimated_mfu\":%s,\"dense_layers\":%d,"
               "\"dense_layers_int8\":%d,\"products\":%d,\"products_s8\":%d,"
               "\"products_bf16\":%d,\"products_f32\":%d}\n",
               o->target, precision, (long long)bucket.batch, (long long)bucket.sequence,
               what->packed_encoder ? "true" : "false", arithmetic, state, seconds,
               (long long)made->code_bytes, (long long)made->temporary_bytes,
               (long long)made->peak_bytes, made->serialized.bytes,
               (long long)hlo->estimated_cycles, hlo->unestimated, rate, mfu, program->dense_count,
               program->dense_int8_count, hlo->products, hlo->products_s8, hlo->products_bf16,
               hlo->products_f32);
    else
        printf(
            "%6lld %6lld%c %-12s %8.1f %9.1f %9.1f %12lld %12.0f %7s  %s, %d of %d products int8\n",
            (long long)bucket.batch, (long long)bucket.sequence, what->packed_encoder ? 'p' : ' ',
            state, seconds, (double)made->code_bytes / 1048576,
            (double)made->temporary_bytes / 1048576, (long long)hlo->estimated_cycles, rate,
            percent, arithmetic, hlo->products_s8, hlo->products);
    fflush(stdout);
}

static status store(compile_cache *cache, const compile_cache_key *key, const device_model *what,
                    device_bucket bucket, const stablehlo_program *program,
                    const pjrt_ahead_of_time *made, const hlo_summary *hlo, const char *compiler,
                    double seconds)
{
    char text[PJRT_SUMMARY_BYTES + 400];
    int bytes =
        pjrt_program_summary(text, what, bucket, program, made->device_kind, compiler, seconds);
    bytes += snprintf(text + bytes, sizeof text - (size_t)bytes,
                      "code_bytes %lld\ntemporary_bytes %lld\npeak_bytes %lld\nestimated_cycles "
                      "%lld\nproducts %d\n"
                      "products_s8 %d\nproducts_bf16 %d\nproducts_f32 %d\n"
                      "unestimated_instructions %d\n",
                      (long long)made->code_bytes, (long long)made->temporary_bytes,
                      (long long)made->peak_bytes, (long long)hlo->estimated_cycles, hlo->products,
                      hlo->products_s8, hlo->products_bf16, hlo->products_f32, hlo->unestimated);
    compile_cache_entry entry = {made->serialized.data, made->serialized.bytes, text,
                                 (size_t)bytes};
    return compile_cache_put(cache, key, &entry);
}

/* The figure of that name in an entry's summary, or `otherwise`. */
static double figure(const char *summary, const char *name, double otherwise)
{
    size_t bytes = strlen(name);
    for (const char *line = summary; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, bytes) == 0 && line[bytes] == ' ')
            return strtod(line + bytes, NULL);
    }
    return otherwise;
}

/* Prints what the cache holds for that bucket. False: it has no valid entry. */
static bool print_cached(const compile_options *o, const device_model *what, compile_cache *cache,
                         const compile_cache_key *key, device_bucket bucket,
                         const stablehlo_program *program, totals *t)
{
    compile_cache_entry entry;
    if (compile_cache_get(cache, key, &entry))
        return false;
    const char *s = entry.summary;
    pjrt_ahead_of_time made = {.serialized = {.bytes = entry.program_bytes},
                               .code_bytes = (int64_t)figure(s, "code_bytes", -1),
                               .temporary_bytes = (int64_t)figure(s, "temporary_bytes", -1),
                               .peak_bytes = (int64_t)figure(s, "peak_bytes", -1)};
    hlo_summary hlo = {.estimated_cycles = (int64_t)figure(s, "estimated_cycles", 0),
                       .unestimated = (int)figure(s, "unestimated_instructions", 0),
                       .products = (int)figure(s, "products", 0),
                       .products_s8 = (int)figure(s, "products_s8", 0),
                       .products_bf16 = (int)figure(s, "products_bf16", 0),
                       .products_f32 = (int)figure(s, "products_f32", 0)};
    print_bucket(o, what, bucket, "in the cache", figure(s, "compile_seconds", 0), program, &made,
                 &hlo, facts_of(o->target + 4));
    compile_cache_entry_dispose(&entry);
    t->already++;
    return true;
}

/* The compiler and the chip that it compiles for. */
typedef struct compiler {
    const pjrt_plugin *plugin;
    const char *topology;
    char device_kind[64];
    compile_cache *cache;
} compiler;

/* Checks an exported program against what model.json declares. */
static status check_given(const device_model *what, device_bucket bucket,
                          const stablehlo_program *program, const pjrt_bytes *hlo)
{
    pjrt_declaration declared;
    if (what->exported == NULL || hlo->bytes == 0)
        return STATUS_OK;
    pjrt_declaration_make(what, bucket, program, &declared);
    status s = pjrt_declaration_check(&declared, hlo->data, hlo->bytes);
    pjrt_declaration_dispose(&declared);
    return s;
}

static status compile_program(const compile_options *o, const compiler *c, const device_model *what,
                              device_bucket bucket, const stablehlo_program *program,
                              const compile_cache_key *key, totals *t)
{
    pjrt_ahead_of_time made = {0};
    hlo_summary hlo = {0};
    uint64_t start_ns = clock_now_ns();
    status s = pjrt_compile_ahead(c->plugin, c->topology, program->text, program->bytes, &made);
    double seconds = (double)(clock_now_ns() - start_ns) * 1e-9;
    if (s == STATUS_OK)
        s = check_given(what, bucket, program, &made.optimized_hlo);
    if (s == STATUS_OK) {
        t->compiled++;
        t->seconds += seconds;
        if (made.optimized_hlo.bytes > 0 &&
            hlo_summarise(made.optimized_hlo.data, made.optimized_hlo.bytes, &hlo))
            log_warning("server", "%s", status_message());
        s = store(c->cache, key, what, bucket, program, &made, &hlo, c->plugin->version_text,
                  seconds);
        print_bucket(o, what, bucket, s ? "not kept" : "kept", seconds, program, &made, &hlo,
                     facts_of(c->topology));
    }
    pjrt_ahead_of_time_dispose(&made);
    return s;
}

static status compile_bucket(const compile_options *o, const compiler *c, const device_model *what,
                             device_bucket bucket, totals *t)
{
    graph *specialised = NULL;
    stablehlo_program program;
    status s = pjrt_program_emit(what, bucket, &specialised, &program);
    if (s)
        return s;
    compile_cache_key key =
        pjrt_program_key(what, bucket, &program, c->device_kind, c->plugin->version_text);
    if (!print_cached(o, what, c->cache, &key, bucket, &program, t))
        s = compile_program(o, c, what, bucket, &program, &key, t);
    stablehlo_program_dispose(&program);
    graph_destroy(specialised);
    return s;
}

typedef struct chosen_bucket {
    device_bucket shape;
    bool is_packed;
} chosen_bucket;

/* The model's own buckets, with the sizes of an axis replaced where flags name some. */
static int choose_buckets(const compile_options *o, const model *m, chosen_bucket *out)
{
    int count = 0;
    if (o->batch.count == 0 && o->sequence.count == 0) {
        for (int i = 0; i < m->bucket_count; i++)
            out[count++] = (chosen_bucket){m->buckets[i].shape, m->buckets[i].sequences > 0};
        return count;
    }
    const int64_t *batches = o->batch.count ? o->batch.values : m->batch_buckets;
    const int64_t *sequences = o->sequence.count ? o->sequence.values : m->sequence_buckets;
    int batch_count = o->batch.count ? o->batch.count : m->batch_bucket_count;
    int sequence_count = o->sequence.count ? o->sequence.count : m->sequence_bucket_count;
    for (int i = 0; i < sequence_count; i++)
        for (int k = 0; k < batch_count; k++)
            out[count++] = (chosen_bucket){{batches[k], sequences[i]}, false};
    return count;
}

static int compile_model(const compile_options *o, const compiler *c, const model *m)
{
    totals t = {0};
    static chosen_bucket buckets[MODEL_AXIS_MAX * MODEL_AXIS_MAX];
    int count = choose_buckets(o, m, buckets);
    device_model on_device = m->on_device, on_packed = m->on_packed;
    if (on_device.exported == NULL)
        on_device.precision = on_packed.precision = o->precision;
    if (!o->is_json)
        printf("%s in %s for %s with %s\n\n batch length  entry          compile   code      "
               "scratch    estimated    estimated    est.   matrix\n                             "
               "  s        MiB       MiB        cycles     tokens/s     MFU  arithmetic\n",
               m->name,
               on_device.exported ? "the precision it was exported with"
                                  : device_precision_names[o->precision],
               c->topology, c->plugin->version_text);
    for (int i = 0; i < count; i++)
        if (compile_bucket(o, c, buckets[i].is_packed ? &on_packed : &on_device, buckets[i].shape,
                           &t)) {
            fprintf(stderr, "penstock compile: batch %lld, length %lld: %s\n",
                    (long long)buckets[i].shape.batch, (long long)buckets[i].shape.sequence,
                    status_message());
            t.failed++;
        }
    if (!o->is_json)
        printf(
            "\np: rows hold several sequences\n%d program%s compiled in %.1f s, %d already in the "
            "cache %s\n",
            t.compiled, t.compiled == 1 ? "" : "s", t.seconds, t.already, o->cache);
    return t.failed > 0 ? 1 : 0;
}

static int run(const compile_options *o)
{
    pjrt_plugin plugin;
    compiler c = {.plugin = &plugin, .topology = o->target + 4}; /* after "tpu:" */
    loaded_model opened = {0};
    /* The CPU runs nothing here. */
    const loaded_model_options what = {.path = o->model,
                                       .precision = DEVICE_FP32,
                                       .skips_warm_up = true,
                                       .allows_no_device = true};
    int code = 1;
    /* libtpu: do not ask the metadata server for a chip; allow several processes. */
    setenv("TPU_SKIP_MDS_QUERY", "1", 0);
    setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 0);
    if (pjrt_plugin_open(o->plugin, &plugin) || compile_cache_open(o->cache, &c.cache) ||
        pjrt_topology_kind(&plugin, c.topology, c.device_kind) || loaded_model_open(&what, &opened))
        fprintf(stderr, "penstock compile: %s\n", status_message());
    else
        code = compile_model(o, &c, opened.model);
    loaded_model_close(&opened);
    compile_cache_close(c.cache);
    return code;
}

static status check_options(const compile_options *o)
{
    if (o->plugin == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "--plugin FILE is missing: libtpu.so of the PyPI package libtpu");
    if (strncmp(o->target, "tpu:", 4) != 0 || facts_of(o->target + 4) == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "--target: \"%s\" is not tpu:GENERATION:TOPOLOGY with v4, v5e, v5p or "
                           "v6e, such as tpu:v5e:1x1",
                           o->target);
    return STATUS_OK;
}

int command_compile(int argc, char **argv)
{
    compile_options o = {.precision = DEVICE_BF16, .plugin = getenv("TPU_LIBRARY_PATH")};
    const flag flags[] = {
        flag_required(flag_text("--model", "DIR",
                                "A model as `penstock inspect` takes it, or NAME=DIR.", &o.model)),
        flag_required(flag_text("--target", "T",
                                "tpu:v4:2x2x1, tpu:v5e:1x1, tpu:v5p:2x2x1, tpu:v6e:1x1, ...",
                                &o.target)),
        flag_required(flag_text("--cache", "DIR",
                                "Folder of the compile cache; created if missing.", &o.cache)),
        flag_text("--plugin", "FILE",
                  "libtpu.so of the PyPI package libtpu; default: $TPU_LIBRARY_PATH.", &o.plugin),
        flag_precision("fp32, bf16 (default) or int8.", &o.precision),
        flag_integers("--batch", "Batch sizes to compile instead of the model's own.", &o.batch,
                      SIZE_LARGEST),
        flag_integers("--sequence", "Sequence lengths to compile instead of the model's own.",
                      &o.sequence, SIZE_LARGEST),
        flag_switch("--json", "Print one JSON object a bucket, one a line.", &o.is_json),
    };
    const flags_usage usage = {
        .command = "compile",
        .synopsis = "--model DIR --target T --cache DIR --plugin libtpu.so [OPTION...]",
        .description =
            "Compiles every bucket of a model for a TPU, without a TPU, and stores the programs in "
            "the compile cache. A server on that TPU with the same plugin release and the same "
            "--cache then compiles nothing. The figures printed are the compiler's estimates.",
        .flags = flags,
        .count = sizeof flags / sizeof *flags};
    log_configure(LOG_WARNING, LOG_FORMAT_AUTO);
    int code = flags_parse(&usage, argc, argv);
    if (code != FLAGS_OK)
        return code;
    return check_options(&o) ? flags_fail(&usage) : run(&o);
}
