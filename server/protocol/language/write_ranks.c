/* Responses of /rerank and /v1/rerank: the texts from best to worst. */
#include <math.h>
#include <stdlib.h>

#include "server/protocol/language/parts.h"
#include "server/protocol/language/vectors.h"
#include "server/protocol/text/text_write.h"

typedef struct rank {
    int64_t index;
    float score;
} rank;

static int compare(const void *a, const void *b)
{
    const rank *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->index < y->index ? -1 : 1; /* equal ones in the order of the request */
}

static void write_tei(text_buffer *out, const language_request *l, const rank *ranks, int64_t count)
{
    text_buffer_put(out, "[");
    for (int64_t i = 0; i < count; i++) {
        json_string text = l->texts.items[ranks[i].index].pair;
        text_buffer_put(out, i > 0 ? ",{\"index\":" : "{\"index\":");
        text_write_i64(out, ranks[i].index);
        text_buffer_put(out, ",\"score\":");
        language_write_float(out, ranks[i].score);
        if (l->returns_text) {
            text_buffer_put(out, ",\"text\":");
            text_write_json_string(out, text.text, text.bytes);
        }
        text_buffer_put(out, "}");
    }
    text_buffer_put(out, "]");
}

static void write_cohere(text_buffer *out, const infer_request *r, const rank *ranks, int64_t count)
{
    const language_request *l = r->language;
    text_buffer_put(out, "{\"id\":\"\",\"object\":\"list\",\"model\":");
    text_write_json_text(out, r->model->name);
    text_buffer_put(out, ",\"results\":[");
    for (int64_t i = 0; i < count; i++) {
        json_string text = l->texts.items[ranks[i].index].pair;
        text_buffer_put(out, i > 0 ? ",{\"index\":" : "{\"index\":");
        text_write_i64(out, ranks[i].index);
        text_buffer_put(out, ",\"relevance_score\":");
        language_write_float(out, ranks[i].score);
        if (l->returns_text) {
            text_buffer_put(out, ",\"document\":{\"text\":");
            text_write_json_string(out, text.text, text.bytes);
            text_buffer_put(out, "}");
        }
        text_buffer_put(out, "}");
    }
    text_buffer_put(out, "],\"usage\":{\"prompt_tokens\":");
    text_write_i64(out, l->tokens);
    text_buffer_put(out, ",\"total_tokens\":");
    text_write_i64(out, l->tokens);
    text_buffer_put(out, "}}");
}

status language_write_ranks(text_buffer *out, const infer_request *r)
{
    const language_request *l = r->language;
    rank *ranks = malloc((size_t)r->row_count * sizeof(rank));
    if (ranks == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the response");
    for (int64_t row = 0; row < r->row_count; row++) {
        row_values v = language_row(r, 0, row);
        float score = language_value(&v, 0);
        ranks[row] = (rank){row, l->raw_scores ? score : 1 / (1 + expf(-score))};
    }
    qsort(ranks, (size_t)r->row_count, sizeof(rank), compare);
    int64_t count =
        l->results_max > 0 && l->results_max < r->row_count ? l->results_max : r->row_count;
    if (l->dialect == ROUTE_COHERE)
        write_cohere(out, r, ranks, count);
    else
        write_tei(out, l, ranks, count);
    free(ranks);
    return STATUS_OK;
}
