#include "devices/pjrt_weights.h"

#include <assert.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct weight {
    uint64_t model_key; /* with `value`: a constant as the model's files have it */
    int32_t value;      /* index in the model's symbolic graph, or -1 */
    stablehlo_transform transform;
    unsigned char digest[32]; /* of the transformed data and its shape */
    uint32_t number;
    int references;
} weight;

struct pjrt_weights {
    pjrt_supervisor *supervisor;
    pthread_mutex_t
        lock; /* held during an upload: two programs never upload the same weight twice */
    weight *items;
    int count, capacity;
};

pjrt_weights *pjrt_weights_create(pjrt_supervisor *s)
{
    pjrt_weights *w = calloc(1, sizeof *w);
    assert(w != NULL);
    w->supervisor = s;
    pthread_mutex_init(&w->lock, NULL);
    return w;
}

void pjrt_weights_destroy(pjrt_weights *w)
{
    pthread_mutex_destroy(&w->lock);
    free(w->items);
    free(w);
}

/* Which constant of the model this is, or -1: a folded one, or a model without a key. */
static int32_t index_in(const device_model *model, const tensor *constant)
{
    for (int32_t i = 0; model->model_key != 0 && i < model->graph->value_count; i++)
        if (model->graph->values[i].constant != NULL &&
            model->graph->values[i].constant->data == constant->data)
            return i;
    return -1;
}

static void digest_of(const tensor *t, unsigned char out[32])
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    int64_t head[2] = {t->dtype, t->rank};
    assert(digest != NULL);
    int ok = EVP_DigestInit_ex(digest, EVP_sha256(), NULL) &
             EVP_DigestUpdate(digest, head, sizeof head) &
             EVP_DigestUpdate(digest, t->dims, (size_t)t->rank * sizeof t->dims[0]) &
             EVP_DigestUpdate(digest, t->data, tensor_bytes(t)) &
             EVP_DigestFinal_ex(digest, out, NULL);
    assert(ok == 1);
    EVP_MD_CTX_free(digest);
}

static weight *find_by_value(pjrt_weights *w, uint64_t model_key, int32_t value,
                             stablehlo_transform transform)
{
    for (int i = 0; value >= 0 && i < w->count; i++)
        if (w->items[i].model_key == model_key && w->items[i].value == value &&
            w->items[i].transform == transform)
            return &w->items[i];
    return NULL;
}

static weight *find_by_digest(pjrt_weights *w, const unsigned char digest[32])
{
    for (int i = 0; i < w->count; i++)
        if (memcmp(w->items[i].digest, digest, 32) == 0)
            return &w->items[i];
    return NULL;
}

static status upload(pjrt_weights *w, uint64_t model_key, int32_t value,
                     const stablehlo_argument *argument, weight **out)
{
    arena memory;
    arena_init(&memory, 0);
    tensor data;
    weight made = {.model_key = model_key, .value = value, .transform = argument->transform};
    status s = stablehlo_argument_data(argument, &memory, &data);
    if (s)
        goto done;
    digest_of(&data, made.digest);
    weight *same = find_by_digest(w, made.digest);
    if (same != NULL) {
        *out = same;
        goto done;
    }
    s = pjrt_supervisor_add_weight(w->supervisor, &data, &made.number);
    if (s)
        goto done;
    if (w->count == w->capacity) {
        w->capacity = w->capacity ? 2 * w->capacity : 128;
        w->items = realloc(w->items, (size_t)w->capacity * sizeof *w->items);
        assert(w->items != NULL);
    }
    w->items[w->count] = made;
    *out = &w->items[w->count++];
done:
    arena_dispose(&memory);
    return s;
}

status pjrt_weights_obtain(pjrt_weights *w, const device_model *model,
                           const stablehlo_argument *argument, uint32_t *number)
{
    int32_t value = index_in(model, argument->constant);
    pthread_mutex_lock(&w->lock);
    weight *found = find_by_value(w, model->model_key, value, argument->transform);
    status s = found != NULL ? STATUS_OK : upload(w, model->model_key, value, argument, &found);
    if (s == STATUS_OK) {
        found->references++;
        *number = found->number;
    }
    pthread_mutex_unlock(&w->lock);
    return s;
}

void pjrt_weights_release(pjrt_weights *w, uint32_t number)
{
    pthread_mutex_lock(&w->lock);
    int i = 0;
    while (i < w->count && w->items[i].number != number)
        i++;
    assert(i < w->count);
    if (--w->items[i].references == 0) {
        pjrt_supervisor_remove_weight(w->supervisor, number);
        w->items[i] = w->items[--w->count];
    }
    pthread_mutex_unlock(&w->lock);
}
