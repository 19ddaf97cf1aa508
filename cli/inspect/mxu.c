#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/inspect/mxu.h"
#include "devices/cpu/evaluate.h"
#include "graph/dense_layers.h"
#include "graph/specialise/specialise.h"
#include "server/protocol/text/text_write.h"

#define LAYERS_MAX 4096
/* Sides of the systolic arrays: v4, v5e and v5p; v6e. */
#define TILE 128
#define TILE_V6E 256

/* The dense layers of the model at that bucket; their names live in `*specialised`. */
static int find_layers(const model *m, device_bucket bucket, graph **specialised,
                       graph_dense_layer *out)
{
    tensor inputs[MODEL_TENSORS_MAX] = {0};
    *specialised = NULL;
    if (m->on_device.exported != NULL ||
        graph_bind(m->graph, bucket.batch, bucket.sequence, inputs) ||
        graph_specialise(m->graph, &(graph_binding){.inputs = inputs}, cpu_evaluate_node,
                         specialised))
        return 0;
    int count = graph_find_dense_layers(*specialised, out, LAYERS_MAX);
    return count < LAYERS_MAX ? count : LAYERS_MAX;
}

/* Of all layers, weighted by their multiplications. */
static double total_waste(const graph_dense_layer *layers, int count, int64_t tile)
{
    double real = 0, all = 0;
    for (int i = 0; i < count; i++) {
        double own = (double)layers[i].rows * (double)layers[i].depth * (double)layers[i].width;
        real += own;
        all += own / (1 - graph_dense_waste(&layers[i], tile));
    }
    return all > 0 ? 1 - real / all : 0;
}

static bool has_same_shape(const graph_dense_layer *a, const graph_dense_layer *b)
{
    return a->rows == b->rows && a->depth == b->depth && a->width == b->width;
}

static void print_bucket(device_bucket bucket, const graph_dense_layer *layers, int count)
{
    printf("  %lld x %lld: %.1f%% (%.1f%%)\n", (long long)bucket.batch,
           (long long)(bucket.sequence ? bucket.sequence : 1),
           100 * total_waste(layers, count, TILE), 100 * total_waste(layers, count, TILE_V6E));
    for (int i = 0; i < count; i++) {
        int before = 0, same = 0;
        for (int k = 0; k < count; k++) {
            before += k < i && has_same_shape(&layers[k], &layers[i]);
            same += has_same_shape(&layers[k], &layers[i]);
        }
        if (before == 0)
            printf("    %5.1f%% (%5.1f%%)  %lld x %lld x %lld  %s%s\n",
                   100 * graph_dense_waste(&layers[i], TILE),
                   100 * graph_dense_waste(&layers[i], TILE_V6E), (long long)layers[i].rows,
                   (long long)layers[i].depth, (long long)layers[i].width, layers[i].name,
                   same > 1 ? " and others" : "");
    }
}

void inspect_mxu_print(const model *m)
{
    graph_dense_layer *layers = calloc(LAYERS_MAX, sizeof *layers);
    bool has_title = false;
    for (int i = 0; layers != NULL && i < m->bucket_count; i++) {
        graph *specialised;
        int count = find_layers(m, m->buckets[i].shape, &specialised, layers);
        if (count > 0 && !has_title)
            printf(
                "idle share of a TPU's matrix unit (MXU), by bucket and layer, with rows x depth x "
                "width padded to 128 (in brackets to 256: v6e)\n");
        has_title |= count > 0;
        if (count > 0)
            print_bucket(m->buckets[i].shape, layers, count);
        graph_destroy(specialised);
    }
    free(layers);
}

static void put_layers(text_buffer *out, const graph_dense_layer *layers, int count)
{
    for (int i = 0; i < count; i++) {
        text_buffer_put(out, i ? ",{\"name\":" : "{\"name\":");
        text_write_json_string(out, layers[i].name, strlen(layers[i].name));
        text_buffer_format(out,
                           ",\"rows\":%lld,\"depth\":%lld,\"width\":%lld,\"waste_128\":%.4f,"
                           "\"waste_256\":%.4f}",
                           (long long)layers[i].rows, (long long)layers[i].depth,
                           (long long)layers[i].width, graph_dense_waste(&layers[i], TILE),
                           graph_dense_waste(&layers[i], TILE_V6E));
    }
}

void inspect_mxu_json(const model *m, text_buffer *out)
{
    graph_dense_layer *layers = calloc(LAYERS_MAX, sizeof *layers);
    text_buffer_put(out, "\"mxu\":[");
    for (int i = 0; layers != NULL && i < m->bucket_count; i++) {
        graph *specialised;
        device_bucket b = m->buckets[i].shape;
        int count = find_layers(m, b, &specialised, layers);
        text_buffer_format(
            out,
            "%s{\"batch\":%lld,\"sequence\":%lld,\"waste_128\":%.4f,\"waste_256\":%.4f,"
            "\"layers\":[",
            i ? "," : "", (long long)b.batch, (long long)b.sequence,
            total_waste(layers, count, TILE), total_waste(layers, count, TILE_V6E));
        put_layers(out, layers, count);
        text_buffer_put(out, "]}");
        graph_destroy(specialised);
    }
    text_buffer_put(out, "]");
    free(layers);
}
