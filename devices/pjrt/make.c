#include "devices/pjrt/make.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "devices/pjrt/protocol/protocol.h"

#define ROOM "devices"

/* One way to make the bucket. */
typedef struct attempt {
    graph *specialised; /* whose constants the program borrows */
    stablehlo_program program;
    pjrt_binary binary;
    pjrt_compiled facts;
    compile_cache_key key;
    bool is_cached;
} attempt;

typedef struct work {
    const pjrt_maker *maker;
    const device_model *model;
    device_bucket bucket;
    pjrt_candidate candidates[PJRT_CANDIDATES_MAX];
    int count;
    pjrt_calibration *calibration; /* NULL: no candidate has static scales */
    uint64_t forms;                /* a hash of all candidates, clipped ones too */
    bool is_clipping_decided, may_clip;
    char scores_reason[120]; /* why so */
    uint64_t start_ns;
} work;

void pjrt_binary_dispose(pjrt_binary *b)
{
    if (b->fd >= 0) {
        pjrt_memory_unmap(b->data, b->bytes);
        close(b->fd);
    } else {
        free(b->data);
    }
    *b = (pjrt_binary){.fd = -1};
}

static void dispose(attempt *a)
{
    stablehlo_program_dispose(&a->program);
    pjrt_binary_dispose(&a->binary);
    graph_destroy(a->specialised);
    a->specialised = NULL;
}

void pjrt_made_dispose(pjrt_made *m)
{
    stablehlo_program_dispose(&m->program);
    pjrt_binary_dispose(&m->binary);
    graph_destroy(m->specialised);
    m->specialised = NULL;
    pjrt_calibration_release(m->calibrations, m->calibration);
    m->calibration = NULL;
}

static bool reads_cache(const work *w)
{
    return w->maker->cache != NULL && !w->maker->ignores_cache;
}

/* Of a program by this compiler, or where the cache has only one made ahead of time, of that. */
static compile_cache_key key_of(const work *w, const stablehlo_program *program, const char *name)
{
    const pjrt_maker *m = w->maker;
    compile_cache_key own =
        pjrt_program_key(w->model, w->bucket, program, name, m->device_kind, m->compiler);
    if (m->ahead_compiler == NULL || !reads_cache(w) || compile_cache_has(m->cache, &own))
        return own;
    compile_cache_key ahead =
        pjrt_program_key(w->model, w->bucket, program, name, m->device_kind, m->ahead_compiler);
    return compile_cache_has(m->cache, &ahead) ? ahead : own;
}

/* The candidate as StableHLO, and its key. */
static status emit(const work *w, const pjrt_candidate *c, attempt *out)
{
    attempt made = {.binary = {.fd = -1}};
    pjrt_candidate with = *c;
    status s = pjrt_program_specialise(w->model, w->bucket, c, &made.specialised);
    if (s == STATUS_OK) {
        quantise_channels *channels = NULL;
        if (c->static_linears != 0) {
            channels = pjrt_calibration_select(w->calibration, c->static_linears);
            with.options.channels_count = pjrt_calibration_linears(w->calibration);
        }
        with.options.channels = channels;
        s = pjrt_program_emit(w->model, w->bucket, made.specialised, &with, &made.program);
        free(channels);
    }
    if (s) {
        dispose(&made);
        return s;
    }
    made.key = key_of(w, &made.program, c->name);
    *out = made;
    return STATUS_OK;
}

static bool find_cached(const work *w, attempt *a)
{
    compile_cache_entry entry;
    if (!reads_cache(w) || compile_cache_get(w->maker->cache, &a->key, &entry) != STATUS_OK)
        return false;
    a->binary = (pjrt_binary){entry.program, entry.program_bytes, -1};
    a->is_cached = true;
    pjrt_program_figures(entry.summary, &a->facts);
    entry.program = NULL;
    compile_cache_entry_dispose(&entry);
    return true;
}

static status reject_missing(const work *w, const attempt *a)
{
    char name[80];
    compile_cache_file_name(&a->key, name);
    return status_fail(STATUS_NOT_FOUND,
                       "%s at %lldx%lld: %s is not in the compile cache, and --cache-only "
                       "forbids compiling",
                       w->model->name, (long long)w->bucket.batch, (long long)w->bucket.sequence,
                       name);
}

/* From the cache or compiled. */
static status obtain(const work *w, const pjrt_candidate *c, attempt *out)
{
    const pjrt_maker *m = w->maker;
    attempt made;
    status s = emit(w, c, &made);
    if (s)
        return s;
    bool is_found = find_cached(w, &made);
    if (is_found && m->is_by_schedule && !m->is_cache_only && made.facts.scheduled_cycles == 0) {
        pjrt_binary_dispose(&made.binary); /* its schedule was not counted */
        made.is_cached = is_found = false;
        made.facts = (pjrt_compiled){0};
    }
    if (!is_found)
        s = m->is_cache_only ? reject_missing(w, &made)
                             : m->compile(m->context, w->model, w->bucket, &made.program,
                                          &made.facts, &made.binary);
    if (s)
        dispose(&made);
    else
        *out = made;
    return s;
}

static bool keep(const work *w, const pjrt_candidate *c, const attempt *a)
{
    if (a->is_cached)
        return true;
    if (w->maker->cache == NULL)
        return false;
    char summary[PJRT_SUMMARY_BYTES];
    int bytes = pjrt_program_summary(summary, w->model, w->bucket, &a->program, c->name,
                                     w->maker->device_kind, w->maker->compiler, &a->facts);
    compile_cache_entry entry = {a->binary.data, a->binary.bytes, summary, (size_t)bytes};
    status s = compile_cache_put(w->maker->cache, &a->key, &entry);
    if (s)
        log_warning(ROOM, "%s", status_message());
    return s == STATUS_OK;
}

/* --- clipped attention scores --- */

/* Far enough below ENCODER_SCORE_MAX for text that was not seen. */
#define SCORE_MAX_SEEN (ENCODER_SCORE_MAX * 3 / 4)

static bool clips(const work *w, const pjrt_candidate *c)
{
    bool has_form = c->is_rebuilt || w->model->packed_encoder != NULL;
    return has_form && w->model->encoder != NULL &&
           encoder_clips_scores(w->model->encoder, &c->form);
}

/* STATUS_OK also where nothing could be measured: then nothing is clipped. */
static status decide_clipping(work *w)
{
    char on[60];
    float most = 0;
    if (w->is_clipping_decided)
        return STATUS_OK;
    pjrt_calibration *c = pjrt_calibration_obtain(w->maker->calibrations, w->model);
    status s = pjrt_calibration_measure_scores(c, w->model, w->maker->cache, &most);
    pjrt_calibration_release(w->maker->calibrations, c);
    if (cancel_is_end(s))
        return s;
    w->is_clipping_decided = true;
    w->may_clip = s == STATUS_OK && most <= SCORE_MAX_SEEN;
    if (s) {
        log_warning(ROOM, "%s: attention scores cannot be measured, and are not clipped: %s",
                    w->model->name, status_message());
        snprintf(w->scores_reason, sizeof w->scores_reason, "they could not be measured");
        return STATUS_OK;
    }
    pjrt_calibration_describe(w->model, on, sizeof on);
    snprintf(w->scores_reason, sizeof w->scores_reason,
             "the largest of %s sequences is %.1f, %s %d", on, (double)most,
             w->may_clip ? "at most" : "above", SCORE_MAX_SEEN);
    return STATUS_OK;
}

/* Where one of the candidates that are tried clips scores: none does, unless they are small. */
static status leave_clipped_out(work *w, int *tried)
{
    bool are_all_tried = *tried == w->count;
    status s = STATUS_OK;
    for (int i = 0; i < *tried && s == STATUS_OK; i++)
        if (clips(w, &w->candidates[i]))
            s = decide_clipping(w);
    if (s || !w->is_clipping_decided || w->may_clip)
        return s;
    w->count = pjrt_candidates_without_clipping(w->candidates, w->count);
    if (are_all_tried)
        *tried = w->count;
    return STATUS_OK;
}

/* --- the choice --- */

/* Of what was chosen: by the default program, which changes with the model and with what is
 * emitted for it, and by the forms of all candidates: a choice among others says nothing. */
static compile_cache_key key_of_choice(const work *w, const stablehlo_program *first)
{
    char name[80];
    snprintf(name, sizeof name, "choice for %s among %016llx",
             device_precision_names[w->model->precision], (unsigned long long)w->forms);
    return key_of(w, first, name);
}

/* NULL: it is none of today's candidates. */
static const pjrt_candidate *chosen_of(const work *w, const pjrt_choice *c)
{
    for (int i = 0; i < w->count; i++)
        if (strcmp(w->candidates[i].name, c->trials[c->chosen].name) == 0)
            return &w->candidates[i];
    return NULL;
}

/* Static scales are calibrated on the CPU, and compared there only. */
static bool needs_answers(const work *w, const pjrt_candidate *c, const pjrt_trial *t)
{
    return w->maker->check != NULL && w->maker->is_tuning && c->static_linears == 0 &&
           !t->is_executed && !t->is_rejected;
}

/* What an earlier process has chosen among at least the first `count` candidates. */
static bool read_choice(const work *w, const compile_cache_key *key, int count, pjrt_choice *out)
{
    compile_cache_entry entry;
    pjrt_choice c;
    if (!reads_cache(w) || !compile_cache_has(w->maker->cache, key) ||
        compile_cache_get(w->maker->cache, key, &entry))
        return false;
    status s = pjrt_choice_read(entry.summary, &c);
    compile_cache_entry_dispose(&entry);
    const pjrt_candidate *chosen = s ? NULL : chosen_of(w, &c);
    if (chosen == NULL)
        return false;
    if (w->maker->is_by_schedule && !c.is_by_schedule)
        return false;
    if (w->maker->is_tuning ? !c.is_tuned || needs_answers(w, chosen, &c.trials[c.chosen])
                            : c.left_out + pjrt_choice_count(&c, w->candidates, count) < count)
        return false;
    *out = c;
    return true;
}

/* Tells in `c` whether attention scores are clipped in what it has chosen, if that was decided and
 * not by the cycles. */
static void tell_scores(const work *w, const pjrt_candidate *chosen, pjrt_choice *c)
{
    bool is_told = w->is_clipping_decided && (!w->may_clip || clips(w, chosen));
    snprintf(c->scores, sizeof c->scores, "%s",
             !is_told      ? ""
             : w->may_clip ? "clipped"
                           : "maximum");
    snprintf(c->scores_reason, sizeof c->scores_reason, "%s", is_told ? w->scores_reason : "");
}

static void write_choice(const work *w, const compile_cache_key *key, const pjrt_choice *c,
                         const attempt *best)
{
    char text[PJRT_SUMMARY_BYTES + PJRT_CHOICE_BYTES];
    if (w->maker->cache == NULL)
        return;
    int bytes = snprintf(text, PJRT_SUMMARY_BYTES,
                         "choice_of %s\nmodel_key %016llx\nprecision %s\nbatch %lld\nsequence "
                         "%lld\npacked %d\ndevice %s\ncompiler %s\narithmetic %s\nscales %s\n",
                         w->model->name, (unsigned long long)w->model->model_key,
                         device_precision_names[w->model->precision], (long long)w->bucket.batch,
                         (long long)w->bucket.sequence, w->model->packed_encoder != NULL,
                         w->maker->device_kind, w->maker->compiler,
                         pjrt_program_arithmetic(w->model, &best->program, &best->facts.hlo),
                         pjrt_program_scales(&best->program));
    bytes += pjrt_choice_write(c, text + bytes);
    compile_cache_entry entry = {"", 0, text, (size_t)bytes};
    if (compile_cache_put(w->maker->cache, key, &entry))
        log_warning(ROOM, "%s", status_message());
}

static bool is_budget_spent(const work *w)
{
    double spent = (double)(clock_now_ns() - w->start_ns) * 1e-9;
    return w->maker->is_tuning && w->maker->tune_seconds > 0 && spent > w->maker->tune_seconds;
}

/* Tries the candidate; `*best` becomes the attempt if it is the best so far. */
static status try_candidate(const work *w, int index, pjrt_choice *c, attempt *best)
{
    attempt a;
    const pjrt_candidate *candidate = &w->candidates[index];
    status s = obtain(w, candidate, &a);
    if (s == STATUS_NOT_FOUND && w->maker->is_cache_only) {
        c->left_out++;
        return STATUS_OK;
    }
    if (s == STATUS_UNAVAILABLE || (s && index == 0))
        return s;
    if (s) { /* the others remain */
        log_warning(ROOM, "%s at %lldx%lld: %s is left out: %s", w->model->name,
                    (long long)w->bucket.batch, (long long)w->bucket.sequence, candidate->name,
                    status_message());
        c->left_out++;
        return STATUS_OK;
    }
    pjrt_trial *t = &c->trials[c->count++];
    *t = (pjrt_trial){.cycles = a.facts.hlo.estimated_cycles,
                      .unestimated = a.facts.hlo.unestimated,
                      .scheduled = a.facts.scheduled_cycles};
    if (c->count == 1)
        c->is_by_schedule = w->maker->is_by_schedule && t->scheduled > 0;
    snprintf(t->name, sizeof t->name, "%s", candidate->name);
    pjrt_choice_decide(c);
    if (c->chosen == c->count - 1) {
        dispose(best);
        *best = a;
    } else {
        dispose(&a);
    }
    return STATUS_OK;
}

static status try_all(const work *w, int count, pjrt_choice *c, attempt *best)
{
    *c = (pjrt_choice){.is_tuned = w->maker->is_tuning};
    *best = (attempt){.binary = {.fd = -1}};
    for (int i = 0; i < count; i++) {
        if (i > 0 && is_budget_spent(w)) {
            c->left_out++;
            continue;
        }
        status s = try_candidate(w, i, c, best);
        if (s) {
            dispose(best);
            return s;
        }
        if (c->trials[0].cycles == 0) { /* nothing to compare by: the default */
            c->count = 0;
            break;
        }
    }
    return STATUS_OK;
}

/* --- results on a real plugin --- */

/* A candidate that does not run there cannot be known to be right. */
static void check_answers_of(const work *w, const pjrt_candidate *candidate, pjrt_trial *t)
{
    const pjrt_maker *m = w->maker;
    status s = m->check(m->context, w->model, w->bucket, candidate, &t->answers);
    t->is_executed = true;
    t->is_apart =
        s != STATUS_OK ||
        !device_accuracy_is_reached(
            t->answers, device_accuracy_required(w->model->precision, w->model->samples != NULL));
    if (s)
        log_warning(ROOM, "%s at %lldx%lld: the results of %s cannot be checked: %s",
                    w->model->name, (long long)w->bucket.batch, (long long)w->bucket.sequence,
                    candidate->name, status_message());
}

/* --- the accuracy of int8 --- */

/* Whether int8 so computed keeps its promise; `*t` tells. */
static status check_accuracy(const work *w, const pjrt_candidate *c, pjrt_trial *t)
{
    status s = pjrt_calibration_measure(w->calibration, w->model, w->maker->cache,
                                        c->static_linears, &t->accuracy);
    if (cancel_is_end(s))
        return s;
    if (s)
        log_warning(ROOM, "%s: the accuracy of %s cannot be checked: %s", w->model->name, c->name,
                    status_message());
    t->is_checked = true;
    t->is_rejected =
        s != STATUS_OK ||
        !device_accuracy_is_reached(
            t->accuracy,
            device_accuracy_required(DEVICE_INT8, pjrt_calibration_has_samples(w->model)));
    return STATUS_OK;
}

static bool needs_accuracy(const work *w, const pjrt_candidate *c, const pjrt_trial *t)
{
    return pjrt_candidate_is_int8(c) && w->calibration != NULL && !t->is_checked;
}

/* Where all of int8 that the budget has reached breaks the promise: bf16, whatever that takes. */
static status try_bf16(const work *w, pjrt_choice *c, attempt *best)
{
    int bf16 = 0, before = c->count;
    while (bf16 < w->count && strcmp(w->candidates[bf16].name, "bf16") != 0)
        bf16++;
    const pjrt_trial *t = &c->trials[c->chosen];
    if (!(t->is_apart || t->is_rejected) || bf16 == w->count || w->maker->is_cache_only ||
        pjrt_choice_count(c, &w->candidates[bf16], 1) > 0)
        return STATUS_OK;
    status s = try_candidate(w, bf16, c, best);
    c->left_out -= c->count > before;
    return s;
}

/* Checks what was chosen, and what is chosen in its place, until one keeps the promise. Checked are
 * only programs that would run; one that does not hold costs that the next one is compiled again.
 */
static status check_promise(const work *w, pjrt_choice *c, attempt *best)
{
    int held = c->chosen; /* what `best` is of */
    status s = STATUS_OK;
    while (c->count > 0 && !s) {
        pjrt_trial *t = &c->trials[c->chosen];
        const pjrt_candidate *candidate = chosen_of(w, c);
        if (needs_accuracy(w, candidate, t))
            s = check_accuracy(w, candidate, t);
        else if (needs_answers(w, candidate, t))
            check_answers_of(w, candidate, t);
        else
            break;
        pjrt_choice_decide(c);
        int before = c->count;
        s = s ? s : try_bf16(w, c, best);
        held = c->count > before ? c->chosen : held;
    }
    if (!s && c->chosen == held)
        return STATUS_OK;
    dispose(best);
    if (!s)
        s = obtain(w, chosen_of(w, c), best);
    if (s)
        *best = (attempt){.binary = {.fd = -1}};
    return s;
}

/* Of what the cache has, where nothing may be compiled. STATUS_NOT_FOUND: it has nothing that keeps
 * the promise. */
static status choose_cached(const work *w, int count, pjrt_choice *c, attempt *best)
{
    status s = STATUS_OK;
    *c = (pjrt_choice){0};
    *best = (attempt){.binary = {.fd = -1}};
    for (int i = 0; i < count && !s; i++)
        s = try_candidate(w, i, c, best);
    if (s == STATUS_OK && c->count == 0)
        s = obtain(w, &w->candidates[0], best); /* names what is missing */
    else if (s == STATUS_OK)
        s = check_promise(w, c, best);
    const pjrt_trial *t = &c->trials[c->chosen];
    if (s == STATUS_OK && t->is_rejected)
        s = status_fail(STATUS_NOT_FOUND,
                        "%s at %lldx%lld: %s is not accurate enough (cosine to FP32: mean %.5f, "
                        "lowest %.5f), the compile cache has no other program that is, and "
                        "--cache-only forbids compiling",
                        w->model->name, (long long)w->bucket.batch, (long long)w->bucket.sequence,
                        t->name, t->accuracy.mean, t->accuracy.lowest);
    if (s)
        dispose(best);
    else if (c->count == 1 && t->cycles == 0 && chosen_of(w, c) == w->candidates)
        c->count = 0; /* the default, and nothing to compare it by */
    return s;
}

/* Whether what an earlier process has chosen keeps its promise on today's samples: attention scores
 * that are clipped, and int8, the channels of whose static scales this sets. */
static status check_again(work *w, const pjrt_candidate *c, bool *is_kept)
{
    pjrt_trial t = {0};
    status s = clips(w, c) ? decide_clipping(w) : STATUS_OK;
    *is_kept = !clips(w, c) || w->may_clip;
    if (s || !*is_kept || !pjrt_candidate_is_int8(c) || w->calibration == NULL)
        return s;
    s = check_accuracy(w, c, &t);
    *is_kept = !t.is_rejected;
    return s;
}

/* `count`: how many of the candidates are tried when none has been chosen yet. */
static status choose(work *w, int count, pjrt_choice *c, attempt *best)
{
    attempt first;
    status s = emit(w, &w->candidates[0], &first);
    if (s)
        return s;
    compile_cache_key key = key_of_choice(w, &first.program);
    dispose(&first);
    if (read_choice(w, &key, count, c)) {
        const pjrt_candidate *chosen = chosen_of(w, c);
        bool is_kept;
        s = check_again(w, chosen, &is_kept);
        if (s || is_kept)
            return s ? s : obtain(w, chosen, best);
        log_warning(ROOM, "%s at %lldx%lld: %s, which the compile cache has, %s on these samples",
                    w->model->name, (long long)w->bucket.batch, (long long)w->bucket.sequence,
                    chosen->name,
                    clips(w, chosen) && !w->may_clip ? "clips attention scores that are too large"
                                                     : "is not accurate enough");
    }
    *c = (pjrt_choice){0};
    if (count == 1)
        return obtain(w, &w->candidates[0], best);
    if (w->maker->is_cache_only)
        return choose_cached(w, count, c, best);
    s = try_all(w, count, c, best);
    if (s == STATUS_OK)
        s = check_promise(w, c, best);
    if (s == STATUS_OK && c->count > 1) {
        tell_scores(w, chosen_of(w, c), c);
        write_choice(w, &key, c, best);
    }
    return s;
}

static status make(work *w, pjrt_made *out)
{
    const char *kind = w->maker->device_kind;
    attempt best;
    /* All that may have been chosen; the first `tried` of them are tried now. */
    w->count = pjrt_candidates(w->model, w->bucket, kind, true, w->candidates);
    w->forms = pjrt_candidates_hash(w->candidates, w->count);
    int tried = w->maker->is_tuning ? w->count
                                    : pjrt_candidates(w->model, w->bucket, kind, false,
                                                      (pjrt_candidate[PJRT_CANDIDATES_MAX]){0});
    if (w->model->exported != NULL)
        w->count = tried = 1;
    for (int i = 0; i < w->count && w->calibration == NULL; i++)
        if (w->candidates[i].static_linears != 0)
            w->calibration = pjrt_calibration_obtain(w->maker->calibrations, w->model);
    status s = leave_clipped_out(w, &tried);
    if (s == STATUS_OK)
        s = choose(w, tried, &out->choice, &best);
    if (s)
        return s;
    out->candidate = out->choice.count > 0 ? *chosen_of(w, &out->choice) : w->candidates[0];
    tell_scores(w, &out->candidate, &out->choice);
    out->specialised = best.specialised;
    out->program = best.program;
    out->binary = best.binary;
    out->facts = best.facts;
    out->is_cached = best.is_cached;
    out->is_kept = keep(w, &out->candidate, &best);
    return STATUS_OK;
}

status pjrt_make(const pjrt_maker *maker, const device_model *model, device_bucket bucket,
                 pjrt_made *out)
{
    work w = {.maker = maker, .model = model, .bucket = bucket, .start_ns = clock_now_ns()};
    pjrt_made made = {.binary = {.fd = -1}};
    status s = make(&w, &made);
    made.calibrations = maker->calibrations;
    made.calibration = w.calibration;
    if (s == STATUS_OK)
        *out = made;
    else
        pjrt_calibration_release(made.calibrations, made.calibration);
    return s;
}
