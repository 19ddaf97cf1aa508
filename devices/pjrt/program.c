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

static stablehlo_precision emit_precision(device_precision precision)
{
    static const stablehlo_precision precisions[] = {[DEVICE_FP32] = STABLEHLO_FP32,
                                                     [DEVICE_BF16] = STABLEHLO_BF16,
                                                     [DEVICE_INT8] = STABLEHLO_INT8};
    return precisions[precision];
}

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

static status emit_packed(const device_model *model, device_bucket bucket, graph **specialised,
                          stablehlo_program *out)
{
    graph *made = NULL;
    encoder_packing packing = encoder_packing_of(bucket.batch, bucket.sequence);
    status s = encoder_pack(model->packed_encoder, model->graph, model->budget, cpu_evaluate_node,
                            packing, &made);
    if (s == STATUS_OK)
        s = graph_emit_stablehlo(made, emit_precision(model->precision), out);
    if (s)
        graph_destroy(made);
    else
        *specialised = made;
    return s;
}

status pjrt_program_emit(const device_model *model, device_bucket bucket, graph **specialised,
                         stablehlo_program *out)
{
    tensor inputs[PJRT_SLOT_TENSORS_MAX];
    const graph *g = model->graph;
    if (g->input_count > PJRT_SLOT_TENSORS_MAX || g->output_count > PJRT_SLOT_TENSORS_MAX)
        return status_fail(STATUS_UNSUPPORTED,
                           "%d inputs and %d outputs; a device takes %d of each", g->input_count,
                           g->output_count, PJRT_SLOT_TENSORS_MAX);
    memset(inputs, 0, sizeof inputs);
    graph *made = NULL;
    if (model->packed_encoder != NULL)
        return emit_packed(model, bucket, specialised, out);
    status s = graph_bind(g, bucket.batch, bucket.sequence, inputs);
    if (s == STATUS_OK && model->exported != NULL) {
        *specialised = NULL;
        return copy_exported(model, bucket, inputs, out);
    }
    if (s == STATUS_OK)
        s = graph_specialise(g, &(graph_binding){inputs, model->budget}, cpu_evaluate_node, &made);
    if (s == STATUS_OK)
        s = graph_emit_stablehlo(made, emit_precision(model->precision), out);
    if (s) {
        graph_destroy(made);
        return s;
    }
    *specialised = made;
    return STATUS_OK;
}

compile_cache_key pjrt_program_key(const device_model *model, device_bucket bucket,
                                   const stablehlo_program *program, const char *device_kind,
                                   const char *compiler)
{
    compile_cache_identity identity = {.program = program->text,
                                       .program_bytes = program->bytes,
                                       .precision = device_precision_names[model->precision],
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
                         const char *device_kind, const char *compiler, double compile_seconds)
{
    int bytes =
        snprintf(out, PJRT_SUMMARY_BYTES,
                 "model %s\nprecision %s\nbatch %lld\nsequence %lld\ndevice %s\ncompiler %s\n"
                 "compile_seconds %.3f\nflops %.0f\ndense_layers %d\ndense_layers_int8 %d\n",
                 model->name, device_precision_names[model->precision], (long long)bucket.batch,
                 (long long)bucket.sequence, device_kind, compiler, compile_seconds, program->flops,
                 program->dense_count, program->dense_int8_count);
    return bytes < PJRT_SUMMARY_BYTES ? bytes : PJRT_SUMMARY_BYTES - 1;
}
