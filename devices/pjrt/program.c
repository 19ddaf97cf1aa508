#include "devices/pjrt/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu/evaluate.h"
#include "devices/exported.h"
#include "devices/pjrt/protocol/protocol.h"
#include "devices/pjrt/protocol/signature.h"
#include "graph/encoder/packed.h"
#include "graph/specialise/specialise.h"

/* The printable form of pjrt_compile_options: part of what makes two
 * compilations the same. */
#define COMPILE_OPTIONS_TEXT "replicas 1 partitions 1 portable"

/* Arguments of an exported program at that bucket; `inputs` are the graph's there. */
static void copy_arguments(const device_model *model, const tensor *inputs, stablehlo_program *out)
{
    const struct device_exported *exported = model->exported;
    for (int i = 0; i < exported->argument_count; i++) {
        const device_exported_argument *from = &exported->arguments[i];
        bool is_input = from->input >= 0;
        const tensor *t =
            is_input ? &inputs[from->input] : model->graph->values[from->weight].constant;
        out->arguments[i] = (stablehlo_argument){.input = from->input,
                                                 .constant = is_input ? NULL : t,
                                                 .transform = STABLEHLO_AS_IS,
                                                 .dtype = t->dtype,
                                                 .rank = t->rank};
        memcpy(out->arguments[i].dims, t->dims, sizeof t->dims);
    }
}

static status copy_exported(const device_model *model, device_bucket bucket, const tensor *inputs,
                            stablehlo_program *out)
{
    const device_exported_program *p = device_exported_find(model->exported, bucket);
    if (p == NULL)
        return status_fail(STATUS_NOT_FOUND, "there is no exported program for %lldx%lld",
                           (long long)bucket.batch, (long long)bucket.sequence);
    stablehlo_program made = {
        .text = malloc(p->bytes + 1),
        .bytes = p->bytes,
        .arguments = calloc((size_t)model->exported->argument_count + 1, sizeof *made.arguments),
        .argument_count = model->exported->argument_count,
        .output_count = model->graph->output_count};
    if (made.text == NULL || made.arguments == NULL) {
        stablehlo_program_dispose(&made);
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for %s", p->name);
    }
    memcpy(made.text, p->data, p->bytes);
    copy_arguments(model, inputs, &made);
    *out = made;
    return STATUS_OK;
}

status pjrt_program_specialise(const device_model *model, device_bucket bucket,
                               const pjrt_candidate *how, graph **out)
{
    tensor inputs[PJRT_SLOT_TENSORS_MAX];
    const graph *g = model->graph;
    if (g->input_count > PJRT_SLOT_TENSORS_MAX || g->output_count > PJRT_SLOT_TENSORS_MAX)
        return status_fail(STATUS_UNSUPPORTED,
                           "%d inputs and %d outputs; a device takes %d of each", g->input_count,
                           g->output_count, PJRT_SLOT_TENSORS_MAX);
    if (model->exported != NULL) {
        *out = NULL;
        return STATUS_OK;
    }
    if (model->packed_encoder != NULL)
        return encoder_pack(model->packed_encoder, g, model->budget, cpu_evaluate_node,
                            encoder_packing_of(bucket.batch, bucket.sequence), &how->form, out);
    if (how->is_rebuilt)
        return encoder_pad(model->encoder, g, model->budget, cpu_evaluate_node, bucket.batch,
                           bucket.sequence, &how->form, out);
    memset(inputs, 0, sizeof inputs);
    status s = graph_bind(g, bucket.batch, bucket.sequence, inputs);
    return s ? s
             : graph_specialise(g, &(graph_binding){inputs, model->budget}, cpu_evaluate_node, out);
}

status pjrt_program_emit(const device_model *model, device_bucket bucket, const graph *specialised,
                         const pjrt_candidate *how, stablehlo_program *out)
{
    tensor inputs[PJRT_SLOT_TENSORS_MAX];
    if (model->exported == NULL) {
        status s = graph_emit_stablehlo(specialised, &how->options, out);
        /* What the model needs, not what this form of it multiplies. */
        if (s == STATUS_OK && how->is_rebuilt)
            out->flops = encoder_flops(model->encoder, bucket.batch, bucket.sequence);
        return s;
    }
    memset(inputs, 0, sizeof inputs);
    status s = graph_bind(model->graph, bucket.batch, bucket.sequence, inputs);
    return s ? s : copy_exported(model, bucket, inputs, out);
}

compile_cache_key pjrt_program_key(const device_model *model, device_bucket bucket,
                                   const stablehlo_program *program, const char *candidate,
                                   const char *device_kind, const char *compiler)
{
    compile_cache_identity identity = {.program = program->text,
                                       .program_bytes = program->bytes,
                                       .precision = candidate,
                                       .batch = bucket.batch,
                                       .sequence = bucket.sequence,
                                       .device_kind = device_kind,
                                       .compiler = compiler,
                                       .options = COMPILE_OPTIONS_TEXT};
    if (model->exported == NULL)
        return compile_cache_make_key(&identity);
    /* The declaration is part of the key: it was compared when the entry was made. */
    pjrt_declaration declared;
    pjrt_declaration_make(model, bucket, program, &declared);
    int count = declared.argument_count + declared.output_count;
    identity.declared = declared.items;
    identity.declared_bytes = (size_t)count * sizeof *declared.items;
    compile_cache_key key = compile_cache_make_key(&identity);
    pjrt_declaration_dispose(&declared);
    return key;
}

void pjrt_program_cache_kind(const char *platform, const char *device_kind, char out[160])
{
    snprintf(out, 160, "%s", device_kind);
    if (strcmp(platform, "cpu") != 0)
        return;
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *name = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || name == NULL)
            continue;
        name[strcspn(name, "\n")] = 0;
        snprintf(out, 160, "%s%.100s", device_kind, name);
        break;
    }
    if (file != NULL)
        fclose(file);
}

int pjrt_program_summary(char out[PJRT_SUMMARY_BYTES], const device_model *model,
                         device_bucket bucket, const stablehlo_program *program,
                         const char *candidate, const char *device_kind, const char *compiler,
                         const pjrt_compiled *made)
{
    const hlo_summary *hlo = &made->hlo;
    int bytes = snprintf(
        out, PJRT_SUMMARY_BYTES,
        "model %s\nmodel_key %016llx\nprecision %s\ncandidate %s\nbatch %lld\nsequence %lld\n"
        "packed %d\ndevice %s\ncompiler %s\n"
        "compile_seconds %.3f\nflops %.0f\ndense_layers %d\ndense_layers_int8 %d\n"
        "code_bytes %lld\noutput_bytes %lld\ntemporary_bytes %lld\npeak_bytes "
        "%lld\nestimated_cycles %lld\n"
        "products %d\nproducts_s8 %d\nproducts_bf16 %d\nproducts_f32 %d\n"
        "unestimated_instructions %d\nscheduled_cycles %lld\n",
        model->name, (unsigned long long)model->model_key, device_precision_names[model->precision],
        candidate, (long long)bucket.batch, (long long)bucket.sequence,
        model->packed_encoder != NULL, device_kind, compiler, made->seconds, program->flops,
        program->dense_count, program->dense_int8_count, (long long)made->code_bytes,
        (long long)made->output_bytes, (long long)made->temporary_bytes,
        (long long)made->peak_bytes, (long long)hlo->estimated_cycles, hlo->products,
        hlo->products_s8, hlo->products_bf16, hlo->products_f32, hlo->unestimated,
        (long long)made->scheduled_cycles);
    return bytes < PJRT_SUMMARY_BYTES ? bytes : PJRT_SUMMARY_BYTES - 1;
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

void pjrt_program_figures(const char *summary, pjrt_compiled *out)
{
    out->seconds = figure(summary, "compile_seconds", 0);
    out->code_bytes = (int64_t)figure(summary, "code_bytes", -1);
    out->output_bytes = (int64_t)figure(summary, "output_bytes", -1);
    out->temporary_bytes = (int64_t)figure(summary, "temporary_bytes", -1);
    out->peak_bytes = (int64_t)figure(summary, "peak_bytes", -1);
    out->scheduled_cycles = (int64_t)figure(summary, "scheduled_cycles", 0);
    out->hlo = (hlo_summary){.estimated_cycles = (int64_t)figure(summary, "estimated_cycles", 0),
                             .unestimated = (int)figure(summary, "unestimated_instructions", 0),
                             .products = (int)figure(summary, "products", 0),
                             .products_s8 = (int)figure(summary, "products_s8", 0),
                             .products_bf16 = (int)figure(summary, "products_bf16", 0),
                             .products_f32 = (int)figure(summary, "products_f32", 0)};
}

const char *pjrt_program_arithmetic(const device_model *model, const stablehlo_program *program,
                                    const hlo_summary *hlo)
{
    if (model->exported != NULL)
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

const char *pjrt_program_scales(const stablehlo_program *program)
{
    return program->dense_static_count > 0 ? "static"
           : program->dense_int8_count > 0 ? "dynamic"
                                           : "none";
}
