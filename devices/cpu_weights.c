#include "devices/cpu_weights.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cpu_block.h"
#include "kernels/gemm_f32.h"

typedef struct entry {
    struct entry *next;
    cpu_weights_key key; /* `constant` is not read: it may be gone */
    const void *address; /* of a source constant; NULL: known by its contents */
    uint64_t hash[2];
    size_t bytes;
    float *data;
} entry;

struct cpu_weights {
    pthread_mutex_t lock;
    int references;
    const void **addresses; /* data of the source's constants, sorted */
    size_t address_count;
    entry *entries;
    size_t bytes;
};

static int order_addresses(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (const void *const *)a, y = (uintptr_t) * (const void *const *)b;
    return x < y ? -1 : x > y;
}

cpu_weights *cpu_weights_create(const graph *source)
{
    cpu_weights *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    w->references = 1;
    if (source && source->value_count > 0) {
        w->addresses = calloc((size_t)source->value_count, sizeof w->addresses[0]);
        if (!w->addresses) {
            cpu_weights_release(w);
            return NULL;
        }
        for (int32_t i = 0; i < source->value_count; i++)
            if (source->values[i].constant && source->values[i].constant->data)
                w->addresses[w->address_count++] = source->values[i].constant->data;
        qsort(w->addresses, w->address_count, sizeof w->addresses[0], order_addresses);
    }
    return w;
}

void cpu_weights_retain(cpu_weights *w)
{
    pthread_mutex_lock(&w->lock);
    w->references++;
    pthread_mutex_unlock(&w->lock);
}

void cpu_weights_release(cpu_weights *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    int left = --w->references;
    pthread_mutex_unlock(&w->lock);
    if (left > 0)
        return;
    for (entry *e = w->entries; e;) {
        entry *next = e->next;
        free(e->data);
        free(e);
        e = next;
    }
    pthread_mutex_destroy(&w->lock);
    free(w->addresses);
    free(w);
}

/* Two 64-bit multiply-mix hashes of the contents: 128 bits, so equal means equal. */
static void hash_bytes(const void *data, size_t bytes, uint64_t hash[2])
{
    uint64_t a = 0x9e3779b97f4a7c15u ^ bytes, b = 0xc2b2ae3d27d4eb4fu + bytes;
    const char *p = data;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, p + i, bytes - i < 8 ? bytes - i : 8);
        unsigned __int128 product = (unsigned __int128)(a ^ word) * 0xff51afd7ed558ccdu;
        a = (uint64_t)product ^ (uint64_t)(product >> 64) ^ i;
        b = (b ^ word) * 0xc4ceb9fe1a85ec53u;
        b ^= b >> 29;
    }
    hash[0] = a;
    hash[1] = b;
}

static bool is_same(const entry *e, const cpu_weights_key *key, const void *address,
                    const uint64_t hash[2])
{
    const cpu_weights_key *k = &e->key;
    return e->address == address && e->hash[0] == hash[0] && e->hash[1] == hash[1] &&
           k->form == key->form && k->offset == key->offset && k->k == key->k && k->n == key->n &&
           k->row_stride == key->row_stride && k->column_stride == key->column_stride;
}

static float *allocate(size_t count)
{
    size_t bytes = (count * sizeof(float) + 63) & ~(size_t)63;
    return aligned_alloc(64, bytes ? bytes : 64);
}

static float *transform(const kernels *k, const cpu_weights_key *key, size_t *bytes)
{
    const tensor *t = key->constant;
    size_t count = (size_t)tensor_count(t);
    float *wide = NULL, *out = NULL;
    const float *from = t->data;
    if (t->dtype != DTYPE_F32) {
        wide = allocate(count);
        if (!wide)
            return NULL;
        cpu_load(CPU_COMPUTE_F32, t->dtype, t->data, 0, 1, count, wide);
        from = wide;
    }
    if (key->form == CPU_WEIGHTS_F32) {
        *bytes = count * sizeof(float);
        if (wide)
            return wide;
        out = allocate(count);
        if (out && count)
            memcpy(out, from, count * sizeof(float));
        return out;
    }
    size_t packed = gemm_f32_packed_count(key->k, key->n);
    *bytes = packed * sizeof(float);
    out = allocate(packed);
    if (out)
        k->gemm_pack_f32(from + key->offset, key->row_stride, key->column_stride, key->k, key->n,
                         out);
    free(wide);
    return out;
}

const float *cpu_weights_find(cpu_weights *w, const kernels *k, const cpu_weights_key *key)
{
    assert(key->constant && key->constant->data);
    const void *address = key->constant->data;
    uint64_t hash[2] = {0, 0};
    if (!bsearch(&address, w->addresses, w->address_count, sizeof address, order_addresses)) {
        hash_bytes(address, tensor_bytes(key->constant), hash);
        address = NULL;
    }
    pthread_mutex_lock(&w->lock);
    entry *e = w->entries;
    while (e && !is_same(e, key, address, hash))
        e = e->next;
    if (!e && (e = calloc(1, sizeof *e))) {
        *e = (entry){.key = *key, .address = address, .hash = {hash[0], hash[1]}};
        e->data = transform(k, key, &e->bytes);
        if (e->data) {
            e->next = w->entries;
            w->entries = e;
            w->bytes += e->bytes;
        } else {
            free(e);
            e = NULL;
        }
    }
    pthread_mutex_unlock(&w->lock);
    return e ? e->data : NULL;
}

size_t cpu_weights_bytes(cpu_weights *w)
{
    pthread_mutex_lock(&w->lock);
    size_t bytes = w->bytes;
    pthread_mutex_unlock(&w->lock);
    return bytes;
}
