#include "devices/pjrt/choice.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The columns of a TPU's vector registers. */
#define TPU_LANES 128

typedef struct list {
    pjrt_candidate *items;
    int count;
    bool is_encoder; /* on a TPU */
    bool is_v6;
} list;

/* Where the model is an encoder and the device a TPU: in the form that was found best for encoders,
 * bench/tpu.md. */
static pjrt_candidate *add(list *l, const char *name, stablehlo_precision precision)
{
    assert(l->count < PJRT_CANDIDATES_MAX);
    pjrt_candidate *c = &l->items[l->count++];
    *c = (pjrt_candidate){.options = {.precision = precision}};
    snprintf(c->name, sizeof c->name, "%s", name);
    if (!l->is_encoder || precision == STABLEHLO_FP32)
        return c;
    c->is_rebuilt = true;
    c->form = (encoder_form){.block_width = TPU_LANES, .are_queries_scaled = true};
    c->options.gelu = STABLEHLO_GELU_TANH_BF16;
    c->options.is_norm_one_pass = true;
    c->options.is_stream_bf16 = l->is_v6; /* whose vector units compute in bf16 */
    return c;
}

/* What else may stand for bf16. */
static void add_variants(list *l)
{
    if (!l->is_encoder)
        return;
    add(l, "bf16-gelu-apart", STABLEHLO_BF16)->options.is_gelu_apart = true;
    add(l, "bf16-norm-apart", STABLEHLO_BF16)->options.is_norm_apart = true;
    add(l, "bf16-gelu-f32", STABLEHLO_BF16)->options.gelu = STABLEHLO_GELU_TANH;
    add(l, "bf16-norm-two-passes", STABLEHLO_BF16)->options.is_norm_one_pass = false;
    add(l, l->is_v6 ? "bf16-stream-f32" : "bf16-stream", STABLEHLO_BF16)->options.is_stream_bf16 =
        !l->is_v6;
    add(l, "bf16-sums", STABLEHLO_BF16)->options.are_sums_bf16 = true;
    add(l, "bf16-scores", STABLEHLO_BF16)->options.are_scores_bf16 = true;
    pjrt_candidate *c = add(l, "bf16-heads", STABLEHLO_BF16);
    c->form.block_width = 0;
    c = add(l, "bf16-heads-late", STABLEHLO_BF16);
    c->form.block_width = 0;
    c->options.is_softmax_late = true;
    c = add(l, "bf16-scaled-scores", STABLEHLO_BF16);
    c->form.are_queries_scaled = false;
    c = add(l, "bf16-plain", STABLEHLO_BF16);
    c->is_rebuilt = false;
    c->options = (stablehlo_options){.precision = STABLEHLO_BF16};
}

int pjrt_candidates(const device_model *model, const char *device_kind, bool is_tuning,
                    pjrt_candidate out[PJRT_CANDIDATES_MAX])
{
    static const stablehlo_precision precisions[] = {[DEVICE_FP32] = STABLEHLO_FP32,
                                                     [DEVICE_BF16] = STABLEHLO_BF16,
                                                     [DEVICE_INT8] = STABLEHLO_INT8};
    device_precision precision = model->precision;
    bool is_tpu = strncmp(device_kind, "TPU", 3) == 0;
    list l = {.items = out,
              .is_encoder = is_tpu && model->encoder != NULL,
              .is_v6 = is_tpu && strstr(device_kind, "v6") != NULL};
    add(&l, device_precision_names[precision], precisions[precision]);
    if (precision == DEVICE_INT8)
        add(&l, "bf16", STABLEHLO_BF16);
    if (is_tuning && precision != DEVICE_FP32)
        add_variants(&l);
    return l.count;
}

void pjrt_choice_decide(pjrt_choice *c)
{
    c->chosen = 0;
    for (int i = 1; i < c->count; i++)
        if (c->trials[i].cycles > 0 && c->trials[i].cycles < c->trials[c->chosen].cycles)
            c->chosen = i;
}

const char *pjrt_choice_reason(const pjrt_choice *c)
{
    return c->count == 0 ? "the default" : "the fewest estimated cycles";
}

int pjrt_choice_write(const pjrt_choice *c, char out[PJRT_CHOICE_BYTES])
{
    int bytes =
        snprintf(out, PJRT_CHOICE_BYTES, "chosen %s\nreason %s\nleft_out %d\nis_tuned %d\n",
                 c->trials[c->chosen].name, pjrt_choice_reason(c), c->left_out, c->is_tuned);
    for (int i = 0; i < c->count && bytes < PJRT_CHOICE_BYTES; i++)
        bytes +=
            snprintf(out + bytes, PJRT_CHOICE_BYTES - (size_t)bytes, "tried %s %lld %d\n",
                     c->trials[i].name, (long long)c->trials[i].cycles, c->trials[i].unestimated);
    assert(bytes < PJRT_CHOICE_BYTES);
    return bytes;
}

status pjrt_choice_read(const char *text, pjrt_choice *out)
{
    pjrt_choice c = {.chosen = -1};
    char chosen[64] = "";
    for (const char *line = text; *line != 0; line += strcspn(line, "\n"), line += *line == '\n') {
        pjrt_trial t = {0};
        long long cycles;
        int is_tuned;
        if (sscanf(line, "is_tuned %d", &is_tuned) == 1)
            c.is_tuned = is_tuned != 0;
        if (sscanf(line, "chosen %63s", chosen) == 1 ||
            sscanf(line, "left_out %d", &c.left_out) == 1 ||
            sscanf(line, "tried %63s %lld %d", t.name, &cycles, &t.unestimated) != 3)
            continue;
        t.cycles = cycles;
        if (c.count == PJRT_CANDIDATES_MAX)
            return status_fail(STATUS_CORRUPT, "a choice of too many programs");
        if (strcmp(t.name, chosen) == 0)
            c.chosen = c.count;
        c.trials[c.count++] = t;
    }
    if (c.chosen < 0)
        return status_fail(STATUS_CORRUPT, "a choice without what was chosen");
    *out = c;
    return STATUS_OK;
}
