/* penstock inspect DIR: what the importer understood, and how the model will be batched. The model
 * is loaded as for serving, so that what is shown is what will run. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text_buffer.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/inspect_mxu.h"
#include "cli/model.h"
#include "devices/cpu/evaluate.h"
#include "devices/device.h"
#include "graph/quantise/fuse.h"
#include "graph/specialise/specialise.h"
#include "server/protocol/infer.h"
#include "server/protocol/text/text_write.h"

static void print_help(FILE *out)
{
    fputs("usage: penstock inspect MODEL [OPTION...]\n"
          "       penstock inspect --device pjrt:PLUGIN.so\n\n"
          "Loads a model on the CPU, and shows its inputs, outputs, axes, buckets and operators, "
          "and\n"
          "whether its rows can be batched and padded. MODEL is what `penstock serve --model` "
          "takes:\n"
          "an ONNX file, a folder with model.onnx, a Hugging Face directory, a folder of exported\n"
          "programs, or a folder of versions of these. A model that cannot be served is refused "
          "with\n"
          "node, operator and reason, and exit status 1.\n\n"
          "  --precision P             fp32 (default), bf16 or int8\n"
          "  --json                    one JSON object\n"
          "  --device pjrt:PLUGIN.so   instead of a model: what the plugin's devices are\n"
          "  --help                    this text\n",
          out);
}

static void count_operators(const graph *g, int counts[GRAPH_OP_COUNT])
{
    memset(counts, 0, GRAPH_OP_COUNT * sizeof(int));
    for (int32_t i = 0; i < g->node_count; i++)
        counts[g->nodes[i].op]++;
}

static void put_string(text_buffer *out, const char *s)
{
    text_write_json_string(out, s ? s : "", s ? strlen(s) : 0);
}

static void json_tensors(text_buffer *out, const char *key, const model_tensor *tensors, int count,
                         bool are_inputs)
{
    text_buffer_format(out, ",\"%s\":[", key);
    for (int i = 0; i < count; i++) {
        const model_tensor *t = &tensors[i];
        char dims[TENSOR_SHAPE_TEXT_BYTES];
        text_buffer_put(out, i ? ",{\"name\":" : "{\"name\":");
        put_string(out, t->name);
        text_buffer_format(out, ",\"datatype\":\"%s\",\"dims\":", dtype_kserve_name(t->dtype));
        put_string(out, infer_dims_text(dims, t));
        text_buffer_format(out, ",\"batch_axis\":%d,\"sequence_axis\":%d", t->batch_axis,
                           t->sequence_axis);
        if (are_inputs)
            text_buffer_format(out, ",\"pad_value\":%.17g,\"is_mask\":%s,\"is_optional\":%s",
                               t->pad_value, t->is_mask ? "true" : "false",
                               t->is_optional ? "true" : "false");
        text_buffer_put(out, "}");
    }
    text_buffer_put(out, "]");
}

/* What a padded plan is made of; `apart`: products that took nothing over. */
static fused_facts look_at_plan(const model *m, int *apart)
{
    fused_facts facts = {0};
    graph *specialised = NULL, *fused = NULL;
    tensor *inputs = calloc((size_t)m->graph->input_count + 1, sizeof *inputs);
    *apart = 0;
    /* A model that runs at exact lengths has no buckets. */
    int64_t batch = m->bucket_count ? m->buckets[0].shape.batch : 1;
    int64_t sequence = m->bucket_count                 ? m->buckets[0].shape.sequence
                       : m->batching.sequence_max > 16 ? 16
                                                       : m->batching.sequence_max;
    if (inputs && m->on_device.exported == NULL &&
        graph_bind(m->graph, batch, sequence, inputs) == STATUS_OK &&
        graph_specialise(m->graph, &(graph_binding){inputs}, cpu_evaluate_node, &specialised) ==
            STATUS_OK &&
        graph_fuse_layers(specialised, &fused, &facts) == STATUS_OK) {
        int counts[GRAPH_OP_COUNT];
        count_operators(fused, counts);
        *apart = counts[GRAPH_OP_MATMUL] + counts[GRAPH_OP_GEMM] + counts[GRAPH_OP_CONV] +
                 counts[GRAPH_OP_MATMUL_INTEGER] + counts[GRAPH_OP_CONV_INTEGER] +
                 counts[GRAPH_OP_QLINEAR_MATMUL] + counts[GRAPH_OP_QLINEAR_CONV];
    }
    graph_destroy(fused);
    graph_destroy(specialised);
    free(inputs);
    return facts;
}

/* Packed buckets stand after the others. */
static int padded_count(const model *m)
{
    int count = 0;
    while (count < m->bucket_count && m->buckets[count].sequences == 0)
        count++;
    return count;
}

static void json_packing(text_buffer *out, const model *m)
{
    int first = padded_count(m);
    text_buffer_put(out, "],\"packing\":{\"why_not\":");
    put_string(out, m->packing_note);
    text_buffer_put(out, ",\"buckets\":[");
    for (int i = first; i < m->bucket_count; i++)
        text_buffer_format(out, "%s{\"rows\":%lld,\"length\":%lld,\"sequences\":%lld}",
                           i > first ? "," : "", (long long)m->buckets[i].shape.batch,
                           (long long)m->buckets[i].shape.sequence,
                           (long long)m->buckets[i].sequences);
    text_buffer_put(out, "]}");
}

static void print_json(const model *m)
{
    text_buffer out = {0};
    int counts[GRAPH_OP_COUNT], apart;
    count_operators(m->graph, counts);
    fused_facts plan = look_at_plan(m, &apart);
    text_buffer_put(&out, "{\"platform\":");
    put_string(&out, m->platform);
    text_buffer_put(&out, ",\"source\":");
    put_string(&out, m->graph->source);
    json_tensors(&out, "inputs", m->inputs, m->input_count, true);
    json_tensors(&out, "outputs", m->outputs, m->output_count, false);
    text_buffer_format(&out,
                       ",\"can_batch\":%s,\"can_pad\":%s,\"batch_max\":%lld,\"sequence_max\":%lld,"
                       "\"findings\":",
                       m->batching.can_batch ? "true" : "false",
                       m->batching.can_pad ? "true" : "false", (long long)m->batching.batch_max,
                       (long long)m->batching.sequence_max);
    put_string(&out, m->batching_note);
    text_buffer_put(&out, ",\"buckets\":[");
    for (int i = 0; i < padded_count(m); i++)
        text_buffer_format(&out, "%s{\"batch\":%lld,\"sequence\":%lld}", i ? "," : "",
                           (long long)m->buckets[i].shape.batch,
                           (long long)m->buckets[i].shape.sequence);
    json_packing(&out, m);
    text_buffer_format(&out, ",\"nodes\":%d,\"operators\":{", m->graph->node_count);
    bool is_first = true;
    for (int op = 0; op < GRAPH_OP_COUNT; op++) {
        if (counts[op] > 0) {
            text_buffer_format(&out, "%s\"%s\":%d", is_first ? "" : ",",
                               graph_op_name((graph_op)op), counts[op]);
            is_first = false;
        }
    }
    text_buffer_format(&out,
                       "},\"products\":{\"fused\":%d,\"quantised\":%d,\"apart\":%d},"
                       "\"unsupported\":[],\"load_ms\":%.3f,\"warm_up_ms\":%.3f,",
                       plan.fused_layer_count, plan.quantised_layer_count, apart,
                       (double)m->load_ns / 1e6, (double)m->warm_up_ns / 1e6);
    inspect_mxu_json(m, &out);
    text_buffer_put(&out, "}\n");
    fwrite(out.data, 1, out.bytes, stdout);
    text_buffer_dispose(&out);
}

static void print_tensors(const char *title, const model_tensor *tensors, int count)
{
    printf("%s\n", title);
    for (int i = 0; i < count; i++) {
        char dims[TENSOR_SHAPE_TEXT_BYTES];
        printf("  %-24s %-6s %s", tensors[i].name, dtype_kserve_name(tensors[i].dtype),
               infer_dims_text(dims, &tensors[i]));
        printf("%s%s\n", tensors[i].is_mask ? "  mask" : "",
               tensors[i].is_optional ? "  optional" : "");
    }
}

/* Words to lines of at most 96 columns, the following ones indented as far as the title. */
static void print_wrapped(const char *title, const char *words)
{
    int indent = (int)strlen(title), column = indent;
    printf("%s", title);
    while (*words != '\0') {
        int n = (int)strcspn(words, " ");
        if (column > indent && column + 1 + n > 96) {
            printf("\n%*s", indent, "");
            column = indent;
        }
        column += printf("%s%.*s", column > indent ? " " : "", n, words);
        words += n;
        words += strspn(words, " ");
    }
    printf("\n");
}

/* One line for each batch size that several sequence lengths share, instead of every pair. */
static void print_buckets(const model *m)
{
    text_buffer line = {0};
    int count = padded_count(m);
    for (int i = 0; i < count; i++) {
        int64_t batch = m->buckets[i].shape.batch;
        bool is_first = true;
        for (int j = 0; j < i; j++)
            is_first = is_first && m->buckets[j].shape.batch != batch;
        if (!is_first)
            continue;
        if (m->buckets[i].shape.sequence == 0) {
            text_buffer_format(&line, "%s%lld", line.bytes ? ", " : "rows: ", (long long)batch);
            continue;
        }
        text_buffer_format(&line, "%s%lld x",
                           line.bytes ? "; " : "rows x positions: ", (long long)batch);
        const char *comma = " ";
        for (int j = i; j < count; j++) {
            if (m->buckets[j].shape.batch == batch) {
                text_buffer_format(&line, "%s%lld", comma, (long long)m->buckets[j].shape.sequence);
                comma = ", ";
            }
        }
    }
    text_buffer_append(&line, "", 1);
    print_wrapped("buckets   ", line.data);
    text_buffer_dispose(&line);
}

static void print_packing(const model *m)
{
    text_buffer line = {0};
    if (m->packed_encoder == NULL)
        text_buffer_format(&line, "a row holds one sequence: %s", m->packing_note);
    else
        text_buffer_put(&line,
                        "on PJRT devices rows may hold several sequences (rows x positions):");
    for (int i = padded_count(m); i < m->bucket_count; i++)
        text_buffer_format(&line, "%s %lld x %lld", i > padded_count(m) ? "," : "",
                           (long long)m->buckets[i].shape.batch,
                           (long long)m->buckets[i].shape.sequence);
    text_buffer_append(&line, "", 1);
    print_wrapped("packing   ", line.data);
    text_buffer_dispose(&line);
}

static void print_text(const model *m)
{
    int counts[GRAPH_OP_COUNT], apart;
    count_operators(m->graph, counts);
    fused_facts plan = look_at_plan(m, &apart);
    printf("platform  %s\nsource    %s\n", m->platform, m->graph->source ? m->graph->source : "");
    print_tensors("inputs", m->inputs, m->input_count);
    print_tensors("outputs", m->outputs, m->output_count);
    printf("batching  %s, %s; at most %lld rows",
           m->batching.can_batch ? "rows are independent" : "rows run alone",
           m->batching.sequence_max == 0 ? "no sequence axis"
           : m->batching.can_pad         ? "rows can be padded"
                                         : "rows run at their own length",
           (long long)m->batching.batch_max);
    if (m->batching.sequence_max > 0)
        printf(" of at most %lld positions", (long long)m->batching.sequence_max);
    printf("\n");
    if (m->batching_note && m->batching_note[0])
        print_wrapped("why       ", m->batching_note);
    print_buckets(m);
    if (m->on_device.exported != NULL)
        return;
    print_packing(m);
    printf(
        "products  %d fused with what follows them, %d of them on bytes; %d apart (padded plans)\n",
        plan.fused_layer_count, plan.quantised_layer_count, apart);
    printf("operators (%d nodes)\n", m->graph->node_count);
    for (int op = 0; op < GRAPH_OP_COUNT; op++) {
        if (counts[op] > 0)
            printf("  %6d  %s\n", counts[op], graph_op_name((graph_op)op));
    }
    inspect_mxu_print(m);
    printf("loaded in %.1f ms, warmed up in %.1f ms\n", (double)m->load_ns / 1e6,
           (double)m->warm_up_ns / 1e6);
}

static int inspect(const char *path, device_precision precision, bool is_json)
{
    const command_model_options options = {
        .path = path, .precision = precision, .allows_no_device = true};
    command_model opened;
    log_configure(LOG_ERROR + 1, LOG_FORMAT_AUTO); /* what went wrong is printed once, below */
    status failure = command_open_model(&options, &opened);
    if (failure && is_json) {
        text_buffer out = {0};
        text_buffer_put(&out, "{\"error\":");
        put_string(&out, status_message());
        text_buffer_put(&out, "}\n");
        fwrite(out.data, 1, out.bytes, stdout);
        text_buffer_dispose(&out);
    }
    if (failure)
        fprintf(stderr, "penstock inspect: %s\n", status_message());
    else if (is_json)
        print_json(opened.loaded);
    else
        print_text(opened.loaded);
    command_close_model(&opened);
    return failure ? 1 : 0;
}

static int refuse(const char *why)
{
    fprintf(stderr, "penstock inspect: %s\n", why);
    return 2;
}

int command_inspect(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"precision", required_argument, NULL, 'p'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    bool is_json = false;
    device_precision precision = DEVICE_FP32;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (c == 'h') {
            print_help(stdout);
            return 0;
        }
        if (c == 'd')
            return inspect_device(optarg);
        if (c == 'j')
            is_json = true;
        else if (c != 'p' || command_read_precision(optarg, &precision))
            return refuse(c == 'p' ? status_message() : "see penstock inspect --help");
    }
    if (optind != argc - 1)
        return refuse("one model is inspected at a time; see penstock inspect --help");
    return inspect(argv[optind], precision, is_json);
}
