#include "devices/pjrt/choice.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/identity/content_hash.h"

/* The columns of a TPU's vector registers. */
#define TPU_LANES 128
#define LARGE_TOKENS 1024
#define HUGE_VALUES (2 << 20)
#define WIDE 512 /* columns of a hidden state */

typedef enum generation { TPU_V4, TPU_V5E, TPU_V5P, TPU_V6E, TPU_7X } generation;

typedef struct list {
    pjrt_candidate *items;
    int count;
    const encoder *encoder; /* on a TPU, else NULL */
    generation generation;
    device_bucket bucket;
} list;

/* By what libtpu calls them; later ones are taken for the latest that is known. */
static generation generation_of(const char *device_kind)
{
    static const struct {
        const char *kind;
        generation generation;
    } kinds[] = {{"TPU v4", TPU_V4},
                 {"TPU v5 lite", TPU_V5E},
                 {"TPU v5e", TPU_V5E},
                 {"TPU v5", TPU_V5P},
                 {"TPU v6", TPU_V6E}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(device_kind, kinds[i].kind, strlen(kinds[i].kind)) == 0)
            return kinds[i].generation;
    return TPU_7X;
}

/* Whether heads are multiplied in blocks (encoder_form): not where tokens are few. This and what
 * follows are the forms with the fewest estimated cycles of MiniLM and BERT-base at 1, 8 and 32
 * rows of 32 and 128 tokens; but blocks of short rows on v5e: those with the fewest scheduled ones
 * (bench/tpu/README.md), whose estimate is up to 10% larger. */
static bool is_in_blocks(const list *l)
{
    bool is_narrow = l->encoder->head_dim < 64;
    bool is_small = l->bucket.batch * l->bucket.sequence <= 256;
    if (l->bucket.batch == 1)
        return l->bucket.sequence >= 64 && l->generation >= TPU_V6E;
    if (l->bucket.sequence >= 64)
        return true;
    switch (l->generation) {
    case TPU_V6E:
        return !is_narrow || !is_small;
    case TPU_7X:
        return is_narrow && !is_small;
    default:
        return true;
    }
}

static bool is_joined(const list *l)
{
    bool is_short = l->bucket.sequence < 64;
    if (l->bucket.batch == 1)
        return is_short ? l->generation != TPU_V5P : l->generation >= TPU_V6E;
    if (l->generation == TPU_V6E)
        return is_short && l->bucket.batch * l->bucket.sequence <= 256;
    return is_short && l->generation != TPU_V4;
}

static bool is_first(const list *l, bool is_blocked)
{
    int64_t tokens = l->bucket.batch * l->bucket.sequence;
    if (l->generation == TPU_V5P && l->bucket.sequence >= 64)
        return l->bucket.batch == 1;
    if (l->generation == TPU_7X && l->encoder->head_dim >= 64 && tokens > 1024)
        return false;
    return l->bucket.batch == 1 || is_blocked;
}

/* Whether tokens are many: what surrounds the matrix multiplications is then worth forms that cost
 * a few instructions more. */
static bool is_large(const list *l)
{
    return l->bucket.batch * l->bucket.sequence >= LARGE_TOKENS;
}

/* Whether so many values lie between layers that tpu7x's program takes less memory and fewer cycles
 * with what v6e has: bf16, GELU and a normalisation apart. */
static bool is_huge_on_7x(const list *l)
{
    return l->generation == TPU_7X &&
           l->bucket.batch * l->bucket.sequence * l->encoder->hidden >= HUGE_VALUES;
}

/* Whether means and the sums of the first normalisation are products. Elsewhere the compiler then
 * takes worse layouts for what follows. */
static bool has_products(const list *l)
{
    if (l->generation == TPU_V5E || l->generation == TPU_V6E)
        return l->bucket.batch > 1;
    return l->generation == TPU_7X && is_large(l) && l->encoder->hidden < WIDE;
}

/* Whether the softmax is divided late without blocks. */
static bool is_late(const list *l)
{
    bool is_wanted = l->bucket.batch == 1 ? l->bucket.sequence < 64 : l->generation == TPU_V6E;
    return is_wanted && !is_in_blocks(l);
}

/* Whether scores are clipped: a maximum over scores costs more than exponentials. Not where both,
 * estimates and schedules, gain less than a measurement of scores is worth, or one of them loses.
 */
static bool is_clipped(const list *l)
{
    bool is_one = l->bucket.batch == 1;
    if (is_late(l))
        return l->generation != TPU_V5E;
    if (!is_in_blocks(l))
        return false;
    switch (l->generation) {
    case TPU_V4:
        return true;
    case TPU_V5P:
        return l->encoder->head_dim < 64;
    case TPU_V5E:
        return is_large(l);
    case TPU_V6E:
        return is_large(l) || is_one;
    default:
        return false;
    }
}

/* Whether GELU and the normalisation before it are computed apart from the layers that read them:
 * what a multiplication computes from its operand it computes for each tile of its result. */
static bool is_apart(const list *l)
{
    return (l->generation == TPU_V6E && is_large(l) && is_in_blocks(l)) || is_huge_on_7x(l);
}

/* Whether the normalisation alone is, too. */
static bool is_norm_kept(const list *l)
{
    return is_apart(l) || (l->generation == TPU_V5P && l->bucket.batch == 1);
}

/* Whether values between layers are bf16, in which the vector units of these compute. */
static bool is_stream_bf16(const list *l)
{
    return l->generation == TPU_V6E || is_huge_on_7x(l);
}

/* Whether rows and tokens are two dimensions in all layers: for these the compiler then fuses both
 * layers around GELU, on v5p and v6e not where tokens are very many. */
static bool are_rows_apart(const list *l)
{
    if (l->bucket.batch == 1)
        return false;
    bool is_large_at_most = l->bucket.batch * l->bucket.sequence <= LARGE_TOKENS;
    switch (l->generation) {
    case TPU_V4:
        return true;
    case TPU_V5E:
        return l->bucket.sequence >= 64;
    case TPU_V5P:
        return is_large_at_most;
    case TPU_V6E:
        return l->bucket.sequence >= 64 && is_large_at_most;
    default:
        return false;
    }
}

static encoder_form form_of(const list *l)
{
    bool is_blocked = is_in_blocks(l);
    return (encoder_form){.block_width = is_blocked ? TPU_LANES : 0,
                          .are_queries_scaled = true,
                          .is_qkv_joined = is_joined(l),
                          .are_values_first = is_first(l, is_blocked),
                          .is_softmax_late = is_late(l),
                          .are_scores_clipped = is_clipped(l),
                          .are_scores_kept = is_clipped(l) && l->generation == TPU_V5E,
                          .are_rows_apart = are_rows_apart(l),
                          .is_mean_product = has_products(l),
                          .are_embedding_sums_products = has_products(l)};
}

/* Where the model is an encoder and the device a TPU: in the form that was found best for encoders,
 * bench/tpu.md. */
static pjrt_candidate *add(list *l, const char *name, stablehlo_precision precision)
{
    assert(l->count < PJRT_CANDIDATES_MAX);
    pjrt_candidate *c = &l->items[l->count++];
    *c = (pjrt_candidate){.options = {.precision = precision}};
    snprintf(c->name, sizeof c->name, "%s", name);
    if (l->encoder == NULL || precision == STABLEHLO_FP32)
        return c;
    c->is_rebuilt = true;
    c->form = form_of(l);
    c->options.gelu = STABLEHLO_GELU_TANH_BF16;
    c->options.is_norm_one_pass = true;
    c->options.are_weights_turned = true;
    c->options.is_stream_bf16 = is_stream_bf16(l);
    c->options.is_gelu_apart = precision == STABLEHLO_BF16 && is_apart(l);
    c->options.is_norm_kept = precision == STABLEHLO_BF16 && is_norm_kept(l);
    c->form.are_rows_apart &= precision == STABLEHLO_BF16;
    return c;
}

/* bf16 with another form of attention, of the best one's other settings; what the form does not use
 * is not set in it. */
static void add_form(list *l, encoder_form form)
{
    char name[64];
    const encoder_form own = form_of(l);
    if (form.block_width == own.block_width && form.is_qkv_joined == own.is_qkv_joined &&
        form.are_values_first == own.are_values_first &&
        form.is_softmax_late == own.is_softmax_late)
        return;
    snprintf(name, sizeof name, "bf16-%s%s%s%s", form.block_width > 0 ? "blocks" : "heads",
             form.is_softmax_late ? "-late" : "", form.are_values_first ? "-first" : "",
             form.is_qkv_joined ? "-joined" : "");
    form.are_scores_clipped &= form.block_width > 0 || form.is_softmax_late;
    form.are_scores_kept &= form.block_width > 0;
    add(l, name, STABLEHLO_BF16)->form = form;
}

static void add_forms(list *l)
{
    for (int joined = 0; joined < 2; joined++)
        for (int first = 0; first < 2; first++) {
            encoder_form form = form_of(l);
            form.is_qkv_joined = joined != 0;
            form.are_values_first = first != 0;
            form.is_softmax_late = false;
            form.block_width = TPU_LANES;
            add_form(l, form);
            form.block_width = 0;
            add_form(l, form);
            form.is_softmax_late = true;
            add_form(l, form);
        }
    pjrt_candidate *c = add(l, "bf16-transposed", STABLEHLO_BF16);
    c->form.block_width = 0;
    c->form.are_heads_transposed = true;
    c->form.are_scores_clipped = c->form.are_scores_kept = false;
}

/* What many tokens have and few have not, or the other way. */
static void add_opposites(list *l)
{
    const encoder_form own = form_of(l);
    if (own.block_width > 0 || own.is_softmax_late) {
        pjrt_candidate *c =
            add(l, own.are_scores_clipped ? "bf16-maximum" : "bf16-clipped", STABLEHLO_BF16);
        c->form.are_scores_clipped = !own.are_scores_clipped;
        c->form.are_scores_kept = false;
    }
    if (own.block_width > 0) {
        bool is_kept = own.are_scores_kept;
        pjrt_candidate *c =
            add(l, is_kept ? "bf16-clipped-with" : "bf16-clipped-kept", STABLEHLO_BF16);
        c->form.are_scores_clipped = true;
        c->form.are_scores_kept = !is_kept;
    }
    pjrt_candidate *c =
        add(l, own.is_mean_product ? "bf16-reductions" : "bf16-products", STABLEHLO_BF16);
    c->form.is_mean_product = c->form.are_embedding_sums_products = !own.is_mean_product;
    c = add(l, own.are_rows_apart ? "bf16-tokens" : "bf16-rows", STABLEHLO_BF16);
    c->form.are_rows_apart = !own.are_rows_apart;
    c = add(l, is_apart(l) ? "bf16-gelu-with" : "bf16-gelu-apart", STABLEHLO_BF16);
    c->options.is_gelu_apart = !is_apart(l);
    c = add(l, is_norm_kept(l) ? "bf16-norm-with" : "bf16-norm-kept", STABLEHLO_BF16);
    c->options.is_norm_kept = !is_norm_kept(l);
}

/* What else may stand for bf16. */
static void add_variants(list *l)
{
    if (l->encoder == NULL)
        return;
    add_forms(l);
    bool is_bf16 = is_stream_bf16(l);
    add(l, is_bf16 ? "bf16-stream-f32" : "bf16-stream", STABLEHLO_BF16)->options.is_stream_bf16 =
        !is_bf16;
    add_opposites(l);
    add(l, "bf16-norm-apart", STABLEHLO_BF16)->options.is_norm_apart = true;
    add(l, "bf16-gelu-f32", STABLEHLO_BF16)->options.gelu = STABLEHLO_GELU_TANH;
    add(l, "bf16-norm-two-passes", STABLEHLO_BF16)->options.is_norm_one_pass = false;
    add(l, "bf16-sums", STABLEHLO_BF16)->options.are_sums_bf16 = true;
    add(l, "bf16-scores", STABLEHLO_BF16)->options.are_scores_bf16 = true;
    add(l, "bf16-scaled-scores", STABLEHLO_BF16)->form.are_queries_scaled = false;
    pjrt_candidate *c = add(l, "bf16-plain", STABLEHLO_BF16);
    c->is_rebuilt = false;
    c->options = (stablehlo_options){.precision = STABLEHLO_BF16};
}

/* int8 with scales known beforehand, in all linear layers and in those of the feed-forward blocks,
 * which are the largest. */
static void add_static(list *l)
{
    add(l, "int8-static", STABLEHLO_INT8)->static_linears = (1u << ENCODER_LINEARS) - 1;
    pjrt_candidate *c = add(l, "int8-static-ffn", STABLEHLO_BF16);
    c->static_linears = 1u << ENCODER_UP | 1u << ENCODER_DOWN;
    c->form.are_rows_apart = false;
}

int pjrt_candidates(const device_model *model, device_bucket bucket, const char *device_kind,
                    bool is_tuning, pjrt_candidate out[PJRT_CANDIDATES_MAX])
{
    static const stablehlo_precision precisions[] = {[DEVICE_FP32] = STABLEHLO_FP32,
                                                     [DEVICE_BF16] = STABLEHLO_BF16,
                                                     [DEVICE_INT8] = STABLEHLO_INT8};
    device_precision precision = model->precision;
    bool is_tpu = strncmp(device_kind, "TPU", 3) == 0;
    list l = {.items = out,
              .encoder = is_tpu ? model->encoder : NULL,
              .generation = generation_of(device_kind),
              .bucket = bucket};
    add(&l, device_precision_names[precision], precisions[precision]);
    if (precision == DEVICE_INT8)
        add(&l, "bf16", STABLEHLO_BF16);
    /* v4 multiplies 8-bit integers no faster than bf16. */
    if (precision == DEVICE_INT8 && l.encoder != NULL && l.generation != TPU_V4)
        add_static(&l);
    if (is_tuning && precision != DEVICE_FP32)
        add_variants(&l);
    return l.count;
}

bool pjrt_candidate_is_int8(const pjrt_candidate *c)
{
    return c->options.precision == STABLEHLO_INT8 || c->static_linears != 0;
}

int pjrt_candidates_without_clipping(pjrt_candidate *candidates, int count)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        pjrt_candidate c = candidates[i];
        /* These differ from the default only in how they clip, or in that they do not. */
        if (strncmp(c.name, "bf16-clipped", 12) == 0 || strcmp(c.name, "bf16-maximum") == 0)
            continue;
        c.form.are_scores_clipped = c.form.are_scores_kept = false;
        candidates[kept++] = c;
    }
    return kept;
}

uint64_t pjrt_candidates_hash(const pjrt_candidate *candidates, int count)
{
    uint64_t hash = 0;
    for (int i = 0; i < count; i++) {
        const stablehlo_options *o = &candidates[i].options;
        const encoder_form *f = &candidates[i].form;
        const int64_t all[] = {candidates[i].static_linears,
                               candidates[i].is_rebuilt,
                               o->precision,
                               o->gelu,
                               o->is_norm_one_pass,
                               o->is_softmax_late,
                               o->is_stream_bf16,
                               o->is_gelu_apart,
                               o->is_norm_apart,
                               o->is_norm_kept,
                               o->are_sums_bf16,
                               o->are_weights_turned,
                               o->are_scores_bf16,
                               f->block_width,
                               f->are_heads_transposed,
                               f->is_qkv_joined,
                               f->are_values_first,
                               f->is_softmax_late,
                               f->are_queries_scaled,
                               f->are_scores_clipped,
                               f->are_scores_kept,
                               f->are_rows_apart,
                               f->is_mean_product,
                               f->are_embedding_sums_products};
        hash = content_hash(hash, candidates[i].name, strlen(candidates[i].name));
        hash = content_hash(hash, all, sizeof all);
    }
    return hash;
}

static bool is_scheduled_shorter(const pjrt_trial *t, const pjrt_trial *than)
{
    return (double)t->scheduled < (1 - PJRT_SCHEDULE_MARGIN) * (double)than->scheduled;
}

/* A sum that leaves more out says less: it does not win by that. */
static bool is_better(const pjrt_choice *c, const pjrt_trial *t, const pjrt_trial *than)
{
    if (c->is_by_schedule && (t->scheduled > 0) != (than->scheduled > 0))
        return t->scheduled > 0;
    if (c->is_by_schedule && t->scheduled > 0 && than->scheduled > 0 &&
        (is_scheduled_shorter(t, than) || is_scheduled_shorter(than, t)))
        return is_scheduled_shorter(t, than);
    return t->cycles > 0 && t->unestimated <= than->unestimated && t->cycles < than->cycles;
}

/* A check has found that it breaks the promise. */
static bool is_out(const pjrt_trial *t)
{
    return t->is_apart || t->is_rejected;
}

void pjrt_choice_decide(pjrt_choice *c)
{
    int chosen = -1;
    for (int i = 0; i < c->count; i++)
        if (!is_out(&c->trials[i]) &&
            (chosen < 0 || is_better(c, &c->trials[i], &c->trials[chosen])))
            chosen = i;
    c->chosen = chosen < 0 ? 0 : chosen;
}

int pjrt_choice_count(const pjrt_choice *c, const pjrt_candidate *candidates, int count)
{
    int found = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < c->count; k++)
            found += strcmp(candidates[i].name, c->trials[k].name) == 0;
    return found;
}

const char *pjrt_choice_reason(const pjrt_choice *c)
{
    static const char *const best[2][3] = {
        {"the fewest estimated cycles",
         "the fewest estimated cycles of those whose results are as near to FP32 as promised",
         "the fewest estimated cycles of those that keep the accuracy"},
        {"the fewest scheduled cycles",
         "the fewest scheduled cycles of those whose results are as near to FP32 as promised",
         "the fewest scheduled cycles of those that keep the accuracy"}};
    if (c->count > 0 && c->trials[c->chosen].is_apart)
        return "the default: no result is as near to FP32 as promised";
    if (c->count > 0 && c->trials[c->chosen].is_rejected)
        return "the default: nothing that was tried keeps the accuracy";
    for (int i = 0; i < c->count; i++)
        if (c->trials[i].is_executed)
            return best[c->is_by_schedule][1];
    for (int i = 0; i < c->count; i++)
        if (c->trials[i].is_rejected)
            return best[c->is_by_schedule][2];
    return c->count == 0 ? "the default" : best[c->is_by_schedule][0];
}

const char *pjrt_choice_explain(const pjrt_choice *c, char text[300])
{
    int n = snprintf(text, 300, "%s", pjrt_choice_reason(c));
    if (*c->scores != 0)
        snprintf(text + n, 300 - (size_t)n, " (attention scores %s: %s)",
                 strcmp(c->scores, "clipped") == 0 ? "clipped" : "with the maximum",
                 c->scores_reason);
    return text;
}

const char *pjrt_trial_describe(const pjrt_trial *t, char text[120])
{
    int n = snprintf(text, 120, "%lld", (long long)t->cycles);
    if (t->scheduled > 0)
        n += snprintf(text + n, 120 - (size_t)n, " (%lld scheduled)", (long long)t->scheduled);
    if (t->is_checked)
        snprintf(text + n, 120 - (size_t)n, " (cosine to FP32: mean %.5f, lowest %.5f%s)",
                 t->accuracy.mean, t->accuracy.lowest, t->is_rejected ? ", too low" : "");
    return text;
}

static void write_checks(const pjrt_trial *t, char out[PJRT_CHOICE_BYTES], int *bytes)
{
    if (t->is_executed && *bytes < PJRT_CHOICE_BYTES)
        *bytes +=
            snprintf(out + *bytes, PJRT_CHOICE_BYTES - (size_t)*bytes, "answers %s %.7f %.7f %d\n",
                     t->name, t->answers.mean, t->answers.lowest, t->is_apart);
    if (t->is_checked && *bytes < PJRT_CHOICE_BYTES)
        *bytes += snprintf(out + *bytes, PJRT_CHOICE_BYTES - (size_t)*bytes,
                           "accuracy %s %.17g %.17g %d\n", t->name, t->accuracy.mean,
                           t->accuracy.lowest, t->is_rejected);
}

int pjrt_choice_write(const pjrt_choice *c, char out[PJRT_CHOICE_BYTES])
{
    int bytes = snprintf(out, PJRT_CHOICE_BYTES,
                         "chosen %s\nreason %s\nleft_out %d\nis_tuned %d\nis_by_schedule %d\n",
                         c->trials[c->chosen].name, pjrt_choice_reason(c), c->left_out, c->is_tuned,
                         c->is_by_schedule);
    if (*c->scores != 0)
        bytes += snprintf(out + bytes, PJRT_CHOICE_BYTES - (size_t)bytes,
                          "scores %s\nscores_reason %s\n", c->scores, c->scores_reason);
    for (int i = 0; i < c->count && bytes < PJRT_CHOICE_BYTES; i++)
        bytes += snprintf(out + bytes, PJRT_CHOICE_BYTES - (size_t)bytes, "tried %s %lld %d %lld\n",
                          c->trials[i].name, (long long)c->trials[i].cycles,
                          c->trials[i].unestimated, (long long)c->trials[i].scheduled);
    for (int i = 0; i < c->count && bytes < PJRT_CHOICE_BYTES; i++)
        write_checks(&c->trials[i], out, &bytes);
    assert(bytes < PJRT_CHOICE_BYTES);
    return bytes;
}

/* "answers NAME ..." and "accuracy NAME ...", behind the line that says that it was tried. */
static void read_checks(const char *line, pjrt_choice *c)
{
    char name[64];
    device_accuracy a;
    int is_bad;
    bool is_executed =
        sscanf(line, "answers %63s %lf %lf %d", name, &a.mean, &a.lowest, &is_bad) == 4;
    if (!is_executed &&
        sscanf(line, "accuracy %63s %lf %lf %d", name, &a.mean, &a.lowest, &is_bad) != 4)
        return;
    for (int i = 0; i < c->count; i++) {
        pjrt_trial *t = &c->trials[i];
        if (strcmp(t->name, name) != 0)
            continue;
        if (is_executed) {
            t->is_executed = true;
            t->is_apart = is_bad != 0;
            t->answers = a;
        } else {
            t->is_checked = true;
            t->is_rejected = is_bad != 0;
            t->accuracy = a;
        }
    }
}

status pjrt_choice_read(const char *text, pjrt_choice *out)
{
    pjrt_choice c = {.chosen = -1};
    char chosen[64] = "";
    for (const char *line = text; *line != 0; line += strcspn(line, "\n"), line += *line == '\n') {
        pjrt_trial t = {0};
        long long cycles, scheduled = 0;
        int is_set;
        read_checks(line, &c);
        (void)sscanf(line, "scores %11s", c.scores);
        (void)sscanf(line, "scores_reason %119[^\n]", c.scores_reason);
        if (sscanf(line, "is_tuned %d", &is_set) == 1)
            c.is_tuned = is_set != 0;
        if (sscanf(line, "is_by_schedule %d", &is_set) == 1)
            c.is_by_schedule = is_set != 0;
        if (sscanf(line, "chosen %63s", chosen) == 1 ||
            sscanf(line, "left_out %d", &c.left_out) == 1 ||
            sscanf(line, "tried %63s %lld %d %lld", t.name, &cycles, &t.unestimated, &scheduled) <
                3)
            continue;
        t.cycles = cycles;
        t.scheduled = scheduled;
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
