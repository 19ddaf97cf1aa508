#include "devices/pjrt/group.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "devices/exported.h"
#include "devices/pjrt/make.h"

#define ROOM "devices"

/* Tries of a compilation whose host ends meanwhile. */
#define TRIES_MAX 3

static bool is_newer(const int a[3], const int b[3])
{
    for (int i = 0; i < 3; i++)
        if (a[i] != b[i])
            return a[i] > b[i];
    return false;
}

/* Names the program that the plugin does not compile, and says it where their versions may be why.
 */
static status explain_exported(const pjrt_group *g, const device_exported_program *p, status s)
{
    int of_program[3], of_plugin[3];
    const char *plugin = strstr(g->facts.version, "stablehlo ");
    if (plugin == NULL || !device_exported_version(p, of_program) ||
        sscanf(plugin, "stablehlo %d.%d.%d", &of_plugin[0], &of_plugin[1], &of_plugin[2]) != 3)
        return status_prefix(s, "%s", p->name);
    const char *advice =
        is_newer(of_program, of_plugin)
            ? "the plugin is older than the program: export it with a JAX of the plugin's age, or "
              "use a newer plugin"
        : is_newer(of_plugin, of_program)
            ? "the plugin is newer than the program, and may not read it any more: export it again"
            : "both have the same version";
    return status_prefix(s, "%s, StableHLO %d.%d.%d, for a plugin with %d.%d.%d (%s)", p->name,
                         of_program[0], of_program[1], of_program[2], of_plugin[0], of_plugin[1],
                         of_plugin[2], advice);
}

/* Of pjrt_maker; `context` is the group. */
static status compile_on_host(void *context, const device_model *model, device_bucket bucket,
                              const stablehlo_program *program, pjrt_compiled *out,
                              pjrt_binary *binary)
{
    pjrt_group *g = context;
    if (model->serving_compiles != NULL) {
        atomic_fetch_add(model->serving_compiles, 1);
        log_error(ROOM, "%s: compiling %lldx%lld although the model is ready", model->name,
                  (long long)bucket.batch, (long long)bucket.sequence);
    }
    pjrt_declaration declared = {0};
    if (model->exported != NULL)
        pjrt_declaration_make(model, bucket, program, &declared);
    pjrt_host_compiled made = {.fd = -1};
    status s = pjrt_supervisor_compile(g->supervisor, program->text, program->bytes,
                                       model->exported != NULL ? &declared : NULL, &made);
    pjrt_declaration_dispose(&declared);
    if (s)
        return model->exported == NULL
                   ? s
                   : explain_exported(g, device_exported_find(model->exported, bucket), s);
    atomic_fetch_add(&g->compiles, 1);
    *out = (pjrt_compiled){.hlo = made.hlo,
                           .seconds = (double)made.compile_ns * 1e-9,
                           .code_bytes = made.code_bytes,
                           .output_bytes = made.output_bytes,
                           .temporary_bytes = made.temporary_bytes,
                           .peak_bytes = made.peak_bytes};
    binary->bytes = made.bytes;
    s = pjrt_memory_map(made.fd, made.bytes, false, &binary->data);
    if (s)
        close(made.fd);
    else
        binary->fd = made.fd;
    return s;
}

static status add_program(pjrt_group *g, const pjrt_made *made, const pjrt_argument *arguments,
                          uint32_t *number)
{
    const pjrt_binary *b = &made->binary;
    int fd = b->fd;
    status s = STATUS_OK;
    if (fd < 0)
        s = pjrt_memory_create_from("penstock-program", b->data, b->bytes, &fd);
    if (s == STATUS_OK)
        s = pjrt_supervisor_add_program(g->supervisor, fd, b->bytes, arguments,
                                        made->program.argument_count, made->program.output_count,
                                        number);
    if (b->fd < 0 && fd >= 0)
        close(fd);
    return s;
}

/* Gives the program and its weights to the host. */
static status load_claimed(pjrt_group *g, const device_model *model, pjrt_made *made,
                           shared_program *p)
{
    const stablehlo_program *program = &made->program;
    pjrt_argument *arguments = calloc((size_t)program->argument_count + 1, sizeof *arguments);
    p->weights = calloc((size_t)program->argument_count + 1, sizeof *p->weights);
    assert(arguments != NULL && p->weights != NULL);
    status s = STATUS_OK;
    for (int i = 0; s == STATUS_OK && i < program->argument_count; i++) {
        const stablehlo_argument *a = &program->arguments[i];
        arguments[i] = (pjrt_argument){.is_weight = a->input < 0, .index = (uint32_t)a->input};
        if (a->input >= 0)
            continue;
        s = pjrt_weights_obtain(g->weights, model->graph, a, &arguments[i].index);
        if (s == STATUS_OK)
            p->weights[p->weight_count++] = arguments[i].index;
    }
    if (s == STATUS_OK)
        s = add_program(g, made, arguments, &p->number);
    free(arguments);
    for (; s != STATUS_OK && p->weight_count > 0; p->weight_count--)
        pjrt_weights_release(g->weights, model->graph, p->weights[p->weight_count - 1]);
    if (s) { /* the next try, with a program compiled anew, has its own */
        free(p->weights);
        p->weights = NULL;
    }
    return s;
}

/* Before anything is loaded: does it fit? */
static status claim_memory(pjrt_group *g, const device_model *model, const pjrt_made *made,
                           shared_program *p)
{
    status s = STATUS_OK;
    p->claim = pjrt_footprint_claim(&made->program, &made->facts, p->bucket);
    for (int is_exact = 0; is_exact <= 1; is_exact++) {
        int64_t weights =
            pjrt_weights_bytes_with(g->weights, model->graph, &made->program, is_exact);
        pthread_mutex_lock(&g->lock);
        if (g->loading > 0 && weights < g->footprint.weight_bytes)
            weights = g->footprint.weight_bytes;
        s = pjrt_footprint_add(&g->footprint, &p->claim, weights);
        g->loading += s == STATUS_OK;
        pthread_mutex_unlock(&g->lock);
        if (s == STATUS_OK)
            break;
    }
    return s;
}

/* What was claimed is loaded, or given back (`is_released`). */
static void settle_memory(pjrt_group *g, shared_program *p, bool was_loading, bool is_released)
{
    pthread_mutex_lock(&g->lock);
    if (is_released)
        pjrt_footprint_remove(&g->footprint, &p->claim);
    g->loading -= was_loading;
    if (g->loading == 0)
        g->footprint.weight_bytes = pjrt_weights_bytes(g->weights);
    pthread_mutex_unlock(&g->lock);
}

/* The same, if it fits. */
static status load_program(pjrt_group *g, const device_model *model, pjrt_made *made,
                           shared_program *p)
{
    status s = claim_memory(g, model, made, p);
    if (s)
        return s;
    pjrt_group_fit_depth(g);
    s = load_claimed(g, model, made, p);
    settle_memory(g, p, true, s != STATUS_OK);
    return s;
}

/* Has the host ended since it had restarted `restarts` times? */
static bool has_host_ended(pjrt_group *g, uint64_t restarts)
{
    device_status now = {0};
    pjrt_supervisor_describe(g->supervisor, &now);
    return now.state != DEVICE_HEALTHY || now.restarts != restarts;
}

/* What a program computes in, with which scales, and why: "bf16 none: the fewest estimated cycles:
 * int8 300, bf16 200". */
static void describe_program(const device_model *model, const pjrt_made *made, shared_program *p)
{
    const pjrt_choice *c = &made->choice;
    size_t room = sizeof p->how;
    char trial[120], reason[300];
    int n = snprintf(p->how, room, "%s %s",
                     pjrt_program_arithmetic(model, &made->program, &made->facts.hlo),
                     pjrt_program_scales(&made->program));
    n += snprintf(p->how + n, room - (size_t)n, ": %s%s", pjrt_choice_explain(c, reason),
                  c->count > 0 ? ": " : "");
    for (int i = 0; i < c->count && n < (int)room; i++)
        n += snprintf(p->how + n, room - (size_t)n, "%s%s %s", i > 0 ? ", " : "", c->trials[i].name,
                      pjrt_trial_describe(&c->trials[i], trial));
}

status pjrt_group_load(pjrt_group *g, const device_model *model, shared_program *p)
{
    status s = STATUS_OK;
    pjrt_maker maker = {.cache = g->cache,
                        .is_cache_only = g->options.is_cache_only,
                        .device_kind = g->cache_kind,
                        .compiler = g->compiler,
                        .ahead_compiler = g->facts.version,
                        .calibrations = g->calibrations,
                        .context = g,
                        .compile = compile_on_host};
    for (int i = 0; i < TRIES_MAX; i++) {
        s = pjrt_supervisor_wait(g->supervisor, PJRT_HEALTHY_WAIT_NS);
        if (s)
            return s;
        device_status before = {0};
        pjrt_supervisor_describe(g->supervisor, &before);
        pjrt_made made = {.binary = {.fd = -1}};
        s = pjrt_make(&maker, model, p->bucket, &made);
        bool is_cached = p->is_cached = made.is_cached;
        if (s == STATUS_OK) {
            atomic_fetch_add(&g->cache_hits, is_cached);
            s = load_program(g, model, &made, p);
        }
        if (s == STATUS_OK && made.specialised != NULL)
            p->range_count = pjrt_ranges_find(made.specialised, &p->memory, &p->ranges);
        p->operations = (int64_t)made.program.flops;
        if (s == STATUS_OK)
            describe_program(model, &made, p);
        pjrt_made_dispose(&made);
        if (s == STATUS_OK || g->options.is_cache_only)
            return s;
        if (is_cached && s != STATUS_RESOURCE_EXHAUSTED) { /* its checksum is right, but the plugin
                                                              cannot load it */
            log_warning(ROOM,
                        "%s: the plugin cannot load a program from the compile cache: %s; "
                        "compiling it again",
                        model->name, status_message());
            compile_cache_refuse(g->cache);
            maker.ignores_cache = true;
        } else if (!has_host_ended(g, before.restarts)) {
            return s;
        }
    }
    return s;
}

void pjrt_group_unload(pjrt_group *g, shared_program *p)
{
    pjrt_supervisor_remove_program(g->supervisor, p->number);
    for (int i = 0; i < p->weight_count; i++)
        pjrt_weights_release(g->weights, p->graph, p->weights[i]);
    settle_memory(g, p, false, true);
}
