#include "devices/pjrt_program.h"

#include <stdio.h>
#include <string.h>

#include "devices/cpu_evaluate.h"
#include "devices/pjrt_protocol.h"
#include "graph/specialise.h"

/* The printable form of the CompileOptionsProto in pjrt_plugin.c: part of what makes two
 * compilations the same. */
#define COMPILE_OPTIONS_TEXT "replicas 1 partitions 1 portable"

static stablehlo_precision emit_precision(device_precision precision)
{
    static const stablehlo_precision precisions[] = {[DEVICE_FP32] = STABLEHLO_FP32,
                                                     [DEVICE_BF16] = STABLEHLO_BF16,
                                                     [DEVICE_INT8] = STABLEHLO_INT8};
    return precisions[precision];
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
    status s = graph_bind(g, bucket.batch, bucket.sequence, inputs);
    if (s == STATUS_OK)
        s = graph_specialise(g, &(graph_binding){inputs}, cpu_evaluate_node, &made);
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
    return compile_cache_make_key(&identity);
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
