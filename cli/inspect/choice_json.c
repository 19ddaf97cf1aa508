#include "cli/inspect/choice_json.h"

/* How near its results are to FP32, as a plugin computed them. */
static void put_answers(const pjrt_trial *t, text_buffer *out)
{
    if (t->is_executed)
        text_buffer_format(out, "{\"cosine_mean\":%.7f,\"cosine_lowest\":%.7f,\"is_kept\":%s}",
                           t->answers.mean, t->answers.lowest, t->is_apart ? "false" : "true");
    else
        text_buffer_put(out, "null");
}

static void put_trial(const pjrt_trial *t, text_buffer *out)
{
    text_buffer_format(out, "{\"candidate\":\"%s\",\"estimated_cycles\":%lld,", t->name,
                       (long long)t->cycles);
    if (t->scheduled > 0)
        text_buffer_format(out, "\"scheduled_cycles\":%lld,", (long long)t->scheduled);
    text_buffer_put(out, "\"answers\":");
    put_answers(t, out);
    if (t->is_checked)
        text_buffer_format(out, ",\"cosine_mean\":%.6f,\"cosine_lowest\":%.6f,\"is_rejected\":%s",
                           t->accuracy.mean, t->accuracy.lowest, t->is_rejected ? "true" : "false");
    text_buffer_put(out, "}");
}

static void put_scores(const pjrt_choice *c, text_buffer *out)
{
    if (*c->scores != 0)
        text_buffer_format(out, "{\"form\":\"%s\",\"reason\":\"%s\"}", c->scores, c->scores_reason);
    else
        text_buffer_put(out, "null");
}

void choice_json_put(const pjrt_choice *c, const char *candidate, text_buffer *out)
{
    text_buffer_format(out,
                       "\"candidate\":\"%s\",\"reason\":\"%s\",\"attention_scores\":", candidate,
                       pjrt_choice_reason(c));
    put_scores(c, out);
    text_buffer_put(out, ",\"tried\":[");
    for (int i = 0; i < c->count; i++) {
        text_buffer_put(out, i > 0 ? "," : "");
        put_trial(&c->trials[i], out);
    }
    text_buffer_put(out, "]");
}
