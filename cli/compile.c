/* penstock compile: compiles programs for a TPU on a machine without one, into the compile cache
 * from which a server on that TPU starts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text/text_buffer.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/inspect/choice_json.h"
#include "cli/loaded_model.h"
#include "devices/device.h"
#include "devices/pjrt/answers.h"
#include "devices/pjrt/footprint.h"
#include "devices/pjrt/make.h"
#include "devices/pjrt/plugin/ahead_of_time.h"
#include "devices/pjrt/protocol/protocol.h"
#include "devices/pjrt/protocol/signature.h"
#include "devices/pjrt/schedule/dump.h"

typedef struct target_facts {
    const char *prefix;          /* of the topology */
    double clock_hz;             /* of the tensor core, to turn cycles into seconds; 0: not known */
    double bf16_flops, int8_ops; /* published peaks per device */
    double hbm_bytes_per_s;      /* published, per device */
    const char *generation;
} target_facts;

/* Peaks as on Google Cloud's pages on TPU system architecture; v4's int8 rate is its bf16 rate, and
 * for tpu7x, whose chips are two devices, none is published. The clock turns the compiler's
 * estimated cycles into seconds. */
static const target_facts targets[] = {
    {"v4", 1.05e9, 275e12, 275e12, 1228e9, "v4"},
    {"v5e", 1.5e9, 197e12, 394e12, 819e9, "v5e"},
    {"v5p", 1.75e9, 459e12, 918e12, 2765e9, "v5p"},
    {"v6e", 1.75e9, 918e12, 1836e12, 1640e9, "v6e"},
    {"tpu7x", 0, 1153.5e12, 1153.5e12, 3690e9, "tpu7x"},
};

#define SIZE_LARGEST 1000000 /* of a batch or a sequence */

typedef struct compile_options {
    const char *model, *target, *cache, *plugin, *check_plugin, *rank;
    device_precision precision;
    flag_list batch, sequence; /* empty: the model's own */
    bool is_json, is_tuning, is_by_schedule;
    double tune_seconds; /* of a bucket; 0: no limit */
} compile_options;

typedef struct totals {
    int already, failed; /* buckets */
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

static void print_json(const compile_options *o, const device_model *what, device_bucket bucket,
                       const char *state, const pjrt_made *made, double rate, const char *mfu)
{
    const hlo_summary *hlo = &made->facts.hlo;
    text_buffer choice = {0};
    char scheduled[24] = "null";
    if (made->facts.scheduled_cycles > 0)
        snprintf(scheduled, sizeof scheduled, "%lld", (long long)made->facts.scheduled_cycles);
    choice_json_put(&made->choice, made->candidate.name, &choice);
    printf("{\"target\":\"%s\",\"precision\":\"%s\",\"batch\":%lld,\"sequence\":%lld,"
           "\"packed\":%s,\"arithmetic\":\"%s\",\"scales\":\"%s\",%s,\"state\":\"%s\",\"compile_"
           "seconds\":%.3f,"
           "\"code_bytes\":%lld,"
           "\"temporary_bytes\":%lld,\"peak_bytes\":%lld,\"program_bytes\":%zu,"
           "\"estimated_cycles\":%lld,\"scheduled_cycles\":%s,\"unestimated_instructions\":%d,"
           "\"estimated_tokens_per_s\":%.0f,\"estimated_mfu\":%s,\"dense_layers\":%d,"
           "\"dense_layers_int8\":%d,\"products\":%d,\"products_s8\":%d,"
           "\"products_bf16\":%d,\"products_f32\":%d}\n",
           o->target, what->exported ? "as exported" : device_precision_names[o->precision],
           (long long)bucket.batch, (long long)bucket.sequence,
           what->packed_encoder ? "true" : "false",
           pjrt_program_arithmetic(what, &made->program, hlo), pjrt_program_scales(&made->program),
           text_buffer_string(&choice), state, made->facts.seconds,
           (long long)made->facts.code_bytes, (long long)made->facts.temporary_bytes,
           (long long)made->facts.peak_bytes, made->binary.bytes, (long long)hlo->estimated_cycles,
           scheduled, hlo->unestimated, rate, mfu, made->program.dense_count,
           made->program.dense_int8_count, hlo->products, hlo->products_s8, hlo->products_bf16,
           hlo->products_f32);
    text_buffer_dispose(&choice);
}

static void print_row(const device_model *what, device_bucket bucket, const char *state,
                      const pjrt_made *made, double rate, const char *percent)
{
    const hlo_summary *hlo = &made->facts.hlo;
    printf("%6lld %6lld%c %-12s %8.1f %9.1f %9.1f %12lld %12.0f %7s  %s, %d of %d products int8",
           (long long)bucket.batch, (long long)bucket.sequence, what->packed_encoder ? 'p' : ' ',
           state, made->facts.seconds, (double)made->facts.code_bytes / 1048576,
           (double)made->facts.temporary_bytes / 1048576, (long long)hlo->estimated_cycles, rate,
           percent, pjrt_program_arithmetic(what, &made->program, hlo), hlo->products_s8,
           hlo->products);
    const pjrt_choice *c = &made->choice;
    char trial[120];
    for (int i = 0; i < c->count; i++)
        if (i != c->chosen)
            printf("%s%s %s%s", i == (c->chosen == 0) ? "; rejected: " : ", ", c->trials[i].name,
                   pjrt_trial_describe(&c->trials[i], trial),
                   c->trials[i].is_apart ? " (far from FP32)" : "");
    if (c->count > 0 && c->trials[c->chosen].is_executed)
        printf("; cosine to FP32 %.5f, lowest %.5f", c->trials[c->chosen].answers.mean,
               c->trials[c->chosen].answers.lowest);
    if (*c->scores != 0)
        printf("; attention scores %s: %s", c->scores, c->scores_reason);
    printf("\n");
}

static void print_bucket(const compile_options *o, const device_model *what, device_bucket bucket,
                         const pjrt_made *made, const target_facts *facts)
{
    const hlo_summary *hlo = &made->facts.hlo;
    bool is_known = hlo->estimated_cycles > 0 && facts->clock_hz > 0;
    double run_seconds = is_known ? (double)hlo->estimated_cycles / facts->clock_hz : 0;
    double tokens = (double)bucket.batch * (double)(bucket.sequence ? bucket.sequence : 1);
    double peak = made->program.dense_int8_count > 0 ? facts->int8_ops : facts->bf16_flops;
    double rate = run_seconds > 0 ? tokens / run_seconds : 0;
    const char *state = made->is_cached ? "in the cache" : made->is_kept ? "kept" : "not kept";
    /* null for exported programs, whose operations are not counted, and for compilers that estimate
     * no cycles. */
    char mfu[24] = "null", percent[24] = "-";
    if (what->exported == NULL && run_seconds > 0) {
        double share = made->program.flops / run_seconds / peak;
        snprintf(mfu, sizeof mfu, "%.4f", share);
        snprintf(percent, sizeof percent, "%.1f%%", 100 * share);
    }
    if (o->is_json)
        print_json(o, what, bucket, state, made, rate, mfu);
    else
        print_row(what, bucket, state, made, rate, percent);
    fflush(stdout);
}

/* The compiler and the chip that it compiles for. */
typedef struct compiler {
    const pjrt_plugin *plugin;
    const char *topology;
    char device_kind[64];
    compile_cache *cache;
    int compiled; /* programs, kept or not, and the seconds that took */
    double seconds;
    pjrt_footprint footprint; /* of a server with these programs */
    pjrt_answers *answers;    /* NULL: results are not checked */
    pjrt_calibrations *calibrations;
    char schedules[256]; /* where the plugin writes them; "": nowhere */
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

/* Of the program that was compiled last: the cycles that its bundles take, or what its operands
 * take to come from memory, if that is more. 0: there is no schedule. */
static int64_t count_schedule(const compiler *c)
{
    const target_facts *facts = facts_of(c->topology);
    schedule_facts found;
    if (*c->schedules == 0)
        return 0;
    if (schedule_dump_read(c->schedules, &found)) {
        log_warning("server", "a schedule cannot be counted: %s", status_message());
        return 0;
    }
    int64_t memory = (int64_t)((double)found.hbm_bytes * facts->clock_hz / facts->hbm_bytes_per_s);
    return found.cycles > memory ? found.cycles : memory;
}

/* Of pjrt_maker; `context` is the compiler. */
static status compile_program(void *context, const device_model *what, device_bucket bucket,
                              const stablehlo_program *program, pjrt_compiled *out,
                              pjrt_binary *binary)
{
    compiler *c = context;
    pjrt_ahead_of_time made = {0};
    if (*c->schedules != 0)
        schedule_dump_discard(c->schedules);
    uint64_t start_ns = clock_now_ns();
    status s = pjrt_compile_ahead(c->plugin, c->topology, program->text, program->bytes, &made);
    *out = (pjrt_compiled){.seconds = (double)(clock_now_ns() - start_ns) * 1e-9,
                           .code_bytes = made.memory.code,
                           .output_bytes = made.memory.outputs,
                           .temporary_bytes = made.memory.temporary,
                           .peak_bytes = made.memory.peak};
    if (s == STATUS_OK)
        s = check_given(what, bucket, program, &made.optimized_hlo);
    if (s == STATUS_OK) {
        c->compiled++;
        c->seconds += out->seconds;
        out->scheduled_cycles = count_schedule(c);
        if (made.optimized_hlo.bytes > 0 &&
            hlo_summarise(made.optimized_hlo.data, made.optimized_hlo.bytes, &out->hlo))
            log_warning("server", "%s", status_message());
        *binary = (pjrt_binary){made.serialized.data, made.serialized.bytes, -1};
        made.serialized = (pjrt_bytes){0};
    }
    pjrt_ahead_of_time_dispose(&made);
    return s;
}

/* Of pjrt_maker: the results of a candidate, on the plugin that executes. */
static status check_answers(void *context, const device_model *what, device_bucket bucket,
                            const pjrt_candidate *candidate, device_accuracy *out)
{
    compiler *c = context;
    return pjrt_answers_compare(c->answers, what, bucket, candidate, out);
}

/* The program is made, but a server could not load it beside those before it. */
static status check_memory(compiler *c, const pjrt_made *made, device_bucket bucket)
{
    pjrt_claim claim = pjrt_footprint_claim(&made->program, &made->facts, bucket);
    int64_t weights = pjrt_footprint_weights(&made->program);
    return pjrt_footprint_add(&c->footprint, &claim,
                              weights > c->footprint.weight_bytes ? weights
                                                                  : c->footprint.weight_bytes);
}

static status compile_bucket(const compile_options *o, compiler *c, const device_model *what,
                             device_bucket bucket, totals *t)
{
    const pjrt_maker maker = {.cache = c->cache,
                              .is_tuning = o->is_tuning,
                              .tune_seconds = o->tune_seconds,
                              .is_by_schedule = o->is_by_schedule,
                              .device_kind = c->device_kind,
                              .compiler = c->plugin->version_text,
                              .calibrations = c->calibrations,
                              .context = c,
                              .compile = compile_program,
                              .check = c->answers != NULL ? check_answers : NULL};
    pjrt_made made;
    status s = pjrt_make(&maker, what, bucket, &made);
    if (s)
        return s;
    print_bucket(o, what, bucket, &made, facts_of(c->topology));
    if (made.is_cached)
        t->already++;
    s = check_memory(c, &made, bucket);
    pjrt_made_dispose(&made);
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

static int compile_model(const compile_options *o, compiler *c, const model *m)
{
    totals t = {0};
    static chosen_bucket buckets[MODEL_AXIS_MAX * MODEL_AXIS_MAX];
    int count = choose_buckets(o, m, buckets);
    device_model on_device = m->on_device, on_packed = m->on_packed;
    if (on_device.exported == NULL)
        on_device.precision = on_packed.precision = o->precision;
    c->footprint.slots = PJRT_SLOTS_MIN;
    c->footprint.memory_bytes = pjrt_footprint_memory_of(c->device_kind);
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
            c->compiled, c->compiled == 1 ? "" : "s", c->seconds, t.already, o->cache);
    pjrt_footprint_dispose(&c->footprint);
    return t.failed > 0 ? 1 : 0;
}

/* With --tune: the plugin of --check-plugin, else the compiler's own if it has a device. Without
 * one, says so. */
static status open_answers(const compile_options *o, const pjrt_plugin *compiler_plugin,
                           pjrt_plugin *plugin, pjrt_answers **out)
{
    if (!o->is_tuning)
        return STATUS_OK;
    if (o->check_plugin != NULL) {
        status s = pjrt_plugin_open(o->check_plugin, plugin);
        if (s == STATUS_OK)
            s = pjrt_answers_create(plugin, out);
        return s ? status_prefix(s, "--check-plugin") : STATUS_OK;
    }
    if (pjrt_answers_create(compiler_plugin, out))
        fprintf(stderr,
                "penstock compile: results are not checked: %s has no device here, and "
                "--check-plugin names no plugin that has one\n",
                o->plugin);
    return STATUS_OK;
}

static int run(const compile_options *o)
{
    pjrt_plugin plugin, check_plugin;
    compiler c = {.plugin = &plugin, .topology = o->target + 4}; /* after "tpu:" */
    loaded_model opened = {0};
    /* The CPU runs nothing here. */
    const loaded_model_options what = {.path = o->model,
                                       .precision = DEVICE_FP32,
                                       .skips_warm_up = true,
                                       .allows_no_device = true};
    int code = 1;
    c.calibrations = pjrt_calibrations_create();
    /* libtpu: do not ask the metadata server for a chip; allow several processes. */
    setenv("TPU_SKIP_MDS_QUERY", "1", 0);
    setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 0);
    if ((o->is_by_schedule && schedule_dump_start(c.schedules)) ||
        pjrt_plugin_open(o->plugin, &plugin) || compile_cache_open(o->cache, &c.cache) ||
        pjrt_topology_kind(&plugin, c.topology, c.device_kind) ||
        open_answers(o, &plugin, &check_plugin, &c.answers) || loaded_model_open(&what, &opened))
        fprintf(stderr, "penstock compile: %s\n", status_message());
    else
        code = compile_model(o, &c, opened.model);
    pjrt_answers_destroy(c.answers);
    pjrt_calibrations_destroy(c.calibrations);
    loaded_model_close(&opened);
    compile_cache_close(c.cache);
    if (*c.schedules != 0)
        schedule_dump_end(c.schedules);
    return code;
}

static status check_options(compile_options *o)
{
    o->is_by_schedule = strcmp(o->rank, "schedule") == 0;
    if (!o->is_by_schedule && strcmp(o->rank, "estimate") != 0)
        return status_fail(STATUS_INVALID_ARGUMENT, "--rank: \"%s\" is not estimate or schedule",
                           o->rank);
    if (o->plugin == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "--plugin FILE is missing: libtpu.so of the PyPI package libtpu");
    if (strncmp(o->target, "tpu:", 4) != 0 || facts_of(o->target + 4) == NULL)
        return status_fail(STATUS_INVALID_ARGUMENT,
                           "--target: \"%s\" is not tpu:GENERATION:TOPOLOGY with v4, v5e, v5p, v6e "
                           "or tpu7x, such as tpu:v5e:1x1",
                           o->target);
    return STATUS_OK;
}

int command_compile(int argc, char **argv)
{
    compile_options o = {
        .precision = DEVICE_BF16, .plugin = getenv("TPU_LIBRARY_PATH"), .rank = "estimate"};
    const flag flags[] = {
        flag_required(flag_text("--model", "DIR",
                                "A model as `penstock inspect` takes it, or NAME=DIR.", &o.model)),
        flag_required(flag_text("--target", "T",
                                "tpu:v4:2x2x1, tpu:v5e:1x1, tpu:v5p:2x2x1, tpu:v6e:1x1, "
                                "tpu:tpu7x:1x1x1, ...",
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
        flag_switch("--tune",
                    "Try every way to compute a bucket and keep the one with the fewest estimated "
                    "cycles.",
                    &o.is_tuning),
        flag_number("--tune-seconds", "S",
                    "With --tune: start no compilation of a bucket after so many seconds; 0 "
                    "(default): no limit.",
                    &o.tune_seconds, 0, 1e6),
        flag_text("--rank", "BY",
                  "What the best program has fewest of: cycles of the compiler's \"estimate\" "
                  "(default), or of the \"schedule\" that libtpu writes.",
                  &o.rank),
        flag_text("--check-plugin", "FILE",
                  "With --tune: a PJRT plugin with a device, on which what would be chosen runs "
                  "beside FP32; default: libtpu.so, if it finds a TPU.",
                  &o.check_plugin),
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
