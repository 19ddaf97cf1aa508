#include "devices/pjrt/weights.h"

#include <assert.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "devices/pjrt/footprint.h"

/* One array on the devices. */
typedef struct weight {
    unsigned char digest[32]; /* of the constant's bytes, type, shape and transform */
    uint32_t number;
    int64_t bytes;
    int references; /* aliases */
} weight;

/* A constant of a loaded graph, and the weight that it is: programs of the model's other buckets
 * find it by its address, without hashing it again. The graph outlives the programs, so the address
 * stays valid. */
typedef struct alias {
    const graph *graph;
    const void *data;
    stablehlo_transform transform;
    int axis;
    uint32_t number;
    int references; /* programs */
} alias;

struct pjrt_weights {
    pjrt_supervisor *supervisor;
    pthread_mutex_t
        lock; /* held during an upload: two programs never upload the same weight twice */
    weight *items;
    int count, capacity;
    alias *aliases;
    int alias_count, alias_capacity;
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
    free(w->aliases);
    free(w);
}

static void digest_of(const stablehlo_argument *argument, unsigned char out[32])
{
    const tensor *t = argument->constant;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    int64_t head[4] = {t->dtype, t->rank, argument->transform, argument->axis};
    assert(digest != NULL);
    int ok = EVP_DigestInit_ex(digest, EVP_sha256(), NULL) &
             EVP_DigestUpdate(digest, head, sizeof head) &
             EVP_DigestUpdate(digest, t->dims, (size_t)t->rank * sizeof t->dims[0]) &
             EVP_DigestUpdate(digest, t->data, tensor_bytes(t));
    const tensor *const channels[] = {argument->channels.factors, argument->channels.offsets};
    for (int i = 0; i < 2; i++)
        if (channels[i] != NULL)
            ok &= EVP_DigestUpdate(digest, channels[i]->data, tensor_bytes(channels[i]));
    ok &= EVP_DigestFinal_ex(digest, out, NULL);
    assert(ok == 1);
    EVP_MD_CTX_free(digest);
}

static void *grow(void *items, int count, int *capacity, size_t bytes)
{
    if (count < *capacity)
        return items;
    *capacity = *capacity ? 2 * *capacity : 128;
    void *grown = realloc(items, (size_t)*capacity * bytes);
    assert(grown != NULL);
    return grown;
}

static weight *find_weight(pjrt_weights *w, const unsigned char digest[32])
{
    for (int i = 0; i < w->count; i++)
        if (memcmp(w->items[i].digest, digest, 32) == 0)
            return &w->items[i];
    return NULL;
}

static alias *find_alias(pjrt_weights *w, const graph *g, const stablehlo_argument *argument)
{
    for (int i = 0; i < w->alias_count; i++) {
        alias *a = &w->aliases[i];
        if (a->graph == g && a->data == argument->constant->data &&
            a->transform == argument->transform && a->axis == argument->axis &&
            argument->channels.factors == NULL)
            return a;
    }
    return NULL;
}

static status upload(pjrt_weights *w, const stablehlo_argument *argument,
                     const unsigned char digest[32], weight **out)
{
    arena memory;
    arena_init(&memory, 0);
    tensor data;
    weight made = {0};
    memcpy(made.digest, digest, sizeof made.digest);
    status s = stablehlo_argument_data(argument, &memory, &data);
    if (s == STATUS_OK)
        s = pjrt_supervisor_add_weight(w->supervisor, &data, &made.number);
    if (s == STATUS_OK)
        made.bytes = (int64_t)tensor_bytes(&data);
    arena_dispose(&memory);
    if (s)
        return s;
    w->items = grow(w->items, w->count, &w->capacity, sizeof *w->items);
    w->items[w->count] = made;
    *out = &w->items[w->count++];
    return STATUS_OK;
}

/* A constant made by folding lies in a specialised graph, which ends with the compilation: its
 * address must not be remembered. */
static bool is_of_model(const graph *g, const tensor *constant)
{
    for (int32_t i = 0; i < g->value_count; i++)
        if (g->values[i].constant != NULL && g->values[i].constant->data == constant->data)
            return true;
    return false;
}

/* Factors are calibrated by a device, and their address says nothing of what they are. */
static bool has_lasting_address(const graph *g, const stablehlo_argument *argument)
{
    return argument->channels.factors == NULL && is_of_model(g, argument->constant);
}

status pjrt_weights_obtain(pjrt_weights *w, const graph *g, const stablehlo_argument *argument,
                           uint32_t *number)
{
    pthread_mutex_lock(&w->lock);
    alias *known = find_alias(w, g, argument);
    status s = STATUS_OK;
    if (known == NULL) {
        unsigned char digest[32];
        digest_of(argument, digest);
        weight *found = find_weight(w, digest);
        if (found == NULL)
            s = upload(w, argument, digest, &found);
        if (s == STATUS_OK) {
            found->references++;
            w->aliases = grow(w->aliases, w->alias_count, &w->alias_capacity, sizeof *w->aliases);
            known = &w->aliases[w->alias_count++];
            *known =
                (alias){.graph = g,
                        .data = has_lasting_address(g, argument) ? argument->constant->data : NULL,
                        .transform = argument->transform,
                        .axis = argument->axis,
                        .number = found->number};
        }
    }
    if (s == STATUS_OK) {
        known->references++;
        *number = known->number;
    }
    pthread_mutex_unlock(&w->lock);
    return s;
}

static int64_t sum_of(const pjrt_weights *w)
{
    int64_t bytes = 0;
    for (int i = 0; i < w->count; i++)
        bytes += w->items[i].bytes;
    return bytes;
}

int64_t pjrt_weights_bytes(pjrt_weights *w)
{
    pthread_mutex_lock(&w->lock);
    int64_t bytes = sum_of(w);
    pthread_mutex_unlock(&w->lock);
    return bytes;
}

/* What `program` would add. Exact: each contents once, for which they are hashed. */
static int64_t new_bytes(pjrt_weights *w, const graph *g, const stablehlo_program *program,
                         bool is_exact)
{
    typedef unsigned char digest[32];
    digest *seen = is_exact ? calloc((size_t)program->argument_count + 1, sizeof *seen) : NULL;
    int seen_count = 0;
    int64_t bytes = 0;
    for (int i = 0; i < program->argument_count; i++) {
        const stablehlo_argument *a = &program->arguments[i];
        if (a->input >= 0 || find_alias(w, g, a) != NULL)
            continue;
        bool is_known = false;
        if (seen != NULL) {
            digest_of(a, seen[seen_count]);
            is_known = find_weight(w, seen[seen_count]) != NULL;
            for (int k = 0; k < seen_count && !is_known; k++)
                is_known = memcmp(seen[k], seen[seen_count], sizeof *seen) == 0;
            seen_count++;
        }
        bytes += is_known ? 0 : pjrt_argument_bytes(a);
    }
    free(seen);
    return bytes;
}

int64_t pjrt_weights_bytes_with(pjrt_weights *w, const graph *g, const stablehlo_program *program,
                                bool is_exact)
{
    pthread_mutex_lock(&w->lock);
    int64_t bytes = sum_of(w) + new_bytes(w, g, program, is_exact);
    pthread_mutex_unlock(&w->lock);
    return bytes;
}

static void release_weight(pjrt_weights *w, uint32_t number)
{
    int i = 0;
    while (i < w->count && w->items[i].number != number)
        i++;
    assert(i < w->count);
    if (--w->items[i].references == 0) {
        pjrt_supervisor_remove_weight(w->supervisor, number);
        w->items[i] = w->items[--w->count];
    }
}

void pjrt_weights_release(pjrt_weights *w, const graph *g, uint32_t number)
{
    pthread_mutex_lock(&w->lock);
    int i = 0;
    while (i < w->alias_count && (w->aliases[i].number != number || w->aliases[i].graph != g))
        i++;
    assert(i < w->alias_count);
    if (--w->aliases[i].references == 0) {
        w->aliases[i] = w->aliases[--w->alias_count];
        release_weight(w, number);
    }
    pthread_mutex_unlock(&w->lock);
}
