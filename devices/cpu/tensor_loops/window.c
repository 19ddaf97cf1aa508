#include "devices/cpu/tensor_loops/window.h"

#include <string.h>

static int64_t at(const graph_attribute *list, int i, int64_t otherwise)
{
    return list && (size_t)i < list->count ? list->ints[i] : otherwise;
}

status cpu_window_init(cpu_window *w, const graph_node *node, const tensor *in, const tensor *out,
                       const int64_t *kernel)
{
    int spatial = in->rank - 2;
    if (spatial < 0 || spatial > CPU_WINDOW_DIMS)
        return status_fail(STATUS_UNSUPPORTED, "%d spatial dimensions; up to %d are supported",
                           spatial, CPU_WINDOW_DIMS);
    const graph_attribute *strides = graph_find_attribute(node, "strides");
    const graph_attribute *dilations = graph_find_attribute(node, "dilations");
    const graph_attribute *pads = graph_find_attribute(node, "pads");
    const char *auto_pad = graph_attribute_string(node, "auto_pad", "NOTSET");
    bool is_same = strncmp(auto_pad, "SAME", 4) == 0,
         is_lower = strcmp(auto_pad, "SAME_LOWER") == 0;
    if (is_same || strcmp(auto_pad, "VALID") == 0)
        pads = NULL;
    w->taps = 1;
    for (int d = 0; d < CPU_WINDOW_DIMS; d++) {
        int s = d - (CPU_WINDOW_DIMS - spatial);
        w->in[d] = s < 0 ? 1 : in->dims[2 + s];
        w->out[d] = s < 0 ? 1 : out->dims[2 + s];
        w->kernel[d] = s < 0 ? 1 : kernel[s];
        w->stride[d] = s < 0 ? 1 : at(strides, s, 1);
        w->dilation[d] = s < 0 ? 1 : at(dilations, s, 1);
        w->pad_begin[d] = s < 0 ? 0 : at(pads, s, 0);
        w->pad_end[d] = s < 0 ? 0 : at(pads, s + spatial, 0);
        if (is_same && s >= 0) {
            int64_t total =
                (w->out[d] - 1) * w->stride[d] + (w->kernel[d] - 1) * w->dilation[d] + 1 - w->in[d];
            total = total < 0 ? 0 : total;
            w->pad_begin[d] = is_lower ? total - total / 2 : total / 2;
            w->pad_end[d] = total - w->pad_begin[d];
        }
        w->taps *= w->kernel[d];
    }
    w->in_plane = w->in[0] * w->in[1] * w->in[2];
    w->out_plane = w->out[0] * w->out[1] * w->out[2];
    return STATUS_OK;
}

status cpu_window_init_image(image_window *image, const graph_node *node, const tensor *x,
                             const tensor *out, const int64_t *kernel)
{
    tensor in_first = {.rank = 4, .dims = {x->dims[0], x->dims[3], x->dims[1], x->dims[2]}};
    tensor out_first = {.rank = 4,
                        .dims = {out->dims[0], out->dims[3], out->dims[1], out->dims[2]}};
    cpu_window w;
    status s = cpu_window_init(&w, node, &in_first, &out_first, kernel);
    if (s)
        return s;
    *image = (image_window){.height = (size_t)w.in[1],
                            .width = (size_t)w.in[2],
                            .channels = (size_t)x->dims[3],
                            .out_height = (size_t)w.out[1],
                            .out_width = (size_t)w.out[2],
                            .kernel_height = (size_t)w.kernel[1],
                            .kernel_width = (size_t)w.kernel[2],
                            .stride_y = (size_t)w.stride[1],
                            .stride_x = (size_t)w.stride[2],
                            .dilation_y = (size_t)w.dilation[1],
                            .dilation_x = (size_t)w.dilation[2],
                            .pad_top = (size_t)w.pad_begin[1],
                            .pad_left = (size_t)w.pad_begin[2]};
    return STATUS_OK;
}
