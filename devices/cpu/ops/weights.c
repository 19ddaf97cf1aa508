#include "devices/cpu/ops/weights.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/identity/content_hash.h"
#include "base/large_memory.h"
#include "base/log.h"
#include "devices/cpu/cache/weights_cache.h"
#include "devices/cpu/tensor_loops/block.h"
#include "kernels/conv_u8s8.h"
#include "kernels/gemm_f32.h"
#include "kernels/gemm_scaled.h"

#define SIGNED_PIECES ((size_t)8)
#define SIGNED_BYTES ((size_t)64)

typedef struct entry {
    struct entry *next;
    cpu_weights_key key; /* `constant` is not read: it may be gone */
    const void *address; /* of a source constant; NULL: known by its contents */
    uint64_t hash[2];
    uint32_t number; /* of a source constant */
    bool is_mapped;  /* `data` lies in the cache's file */
    size_t bytes;
    void *data;
} entry;

/* A constant of the source. */
typedef struct numbered {
    const void *data;
    const tensor *constant;
    uint32_t number; /* among those that are read, in the order of the graph: the same in every
                        start, also of a graph that was kept (graph/stored) */
} numbered;

struct cpu_weights {
    pthread_mutex_t lock;
    int references;
    numbered *addresses; /* of the source's constants, sorted by address */
    size_t address_count;
    entry *entries;
    size_t bytes, table_count;
    weights_cache_name cache_name; /* folder NULL: there is no cache */
    char *cache_folder;
    weights_cache *cache; /* opened when something is first looked up */
    bool is_cache_open;
    bool is_changed; /* there are entries that the cache does not have */
};

static int order_addresses(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    if (x->data != y->data)
        return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Of a graph and its bodies. */
static size_t count_values(const graph *g)
{
    size_t count = (size_t)g->value_count;
    for (const graph *body = g->bodies; body; body = body->next_body)
        count += count_values(body);
    return count;
}

/* Their kind, and some of their content: the same files may be imported in several ways (dims in
 * model.json), which number their constants otherwise. */
static uint64_t sign(uint64_t signature, const tensor *t)
{
    int64_t shape[TENSOR_RANK_MAX + 2] = {t->dtype, t->rank};
    memcpy(shape + 2, t->dims, (size_t)t->rank * sizeof t->dims[0]);
    size_t bytes = tensor_bytes(t), step = bytes / SIGNED_PIECES;
    signature = content_hash(signature, shape, sizeof shape);
    if (bytes <= SIGNED_PIECES * SIGNED_BYTES)
        return content_hash(signature, t->data, bytes);
    for (size_t i = 0; i < SIGNED_PIECES; i++)
        signature = content_hash(signature, (const char *)t->data + i * step, SIGNED_BYTES);
    return signature;
}

/* `is_read`: room for the flags of each of the graphs. */
static void add_addresses(cpu_weights *w, const graph *g, bool *is_read)
{
    graph_mark_read(g, is_read);
    for (int32_t i = 0; i < g->value_count; i++) {
        const tensor *t = g->values[i].constant;
        if (!t || !t->data || !is_read[i])
            continue;
        w->addresses[w->address_count] = (numbered){t->data, t, (uint32_t)w->address_count};
        w->address_count++;
    }
    for (const graph *body = g->bodies; body; body = body->next_body)
        add_addresses(w, body, is_read);
}

static bool list_addresses(cpu_weights *w, const graph *source)
{
    size_t count = count_values(source);
    bool *is_read = calloc(count, sizeof is_read[0]);
    w->addresses = calloc(count, sizeof w->addresses[0]);
    bool is_good = is_read && w->addresses;
    if (is_good) {
        add_addresses(w, source, is_read);
        qsort(w->addresses, w->address_count, sizeof w->addresses[0], order_addresses);
    }
    free(is_read);
    return is_good;
}

/* In any order. */
static uint64_t sign_constants(const cpu_weights *w)
{
    uint64_t sum = 1;
    for (size_t i = 0; i < w->address_count; i++)
        sum += sign(w->addresses[i].number, w->addresses[i].constant);
    return sum;
}

cpu_weights *cpu_weights_create(const graph *source)
{
    cpu_weights *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    w->references = 1;
    if (source && source->value_count > 0 && !list_addresses(w, source)) {
        cpu_weights_release(w);
        return NULL;
    }
    return w;
}

void cpu_weights_use_cache(cpu_weights *w, const kernels *k, const char *folder, uint64_t model_key)
{
    pthread_mutex_lock(&w->lock);
    if (!w->cache_folder && folder && model_key != 0 && (w->cache_folder = strdup(folder)))
        w->cache_name = (weights_cache_name){.folder = w->cache_folder,
                                             .level = kernels_level_name(k->level),
                                             .model_key = model_key,
                                             .signature = sign_constants(w)};
    pthread_mutex_unlock(&w->lock);
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
        if (!e->is_mapped)
            free(e->data);
        free(e);
        e = next;
    }
    weights_cache_close(w->cache);
    free(w->cache_folder);
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
           k->format == key->format && k->offset == key->offset && k->k == key->k &&
           k->n == key->n && k->row_stride == key->row_stride &&
           k->column_stride == key->column_stride && k->taps == key->taps &&
           memcmp(k->arrangement, key->arrangement, sizeof k->arrangement) == 0;
}

static void *allocate(size_t bytes)
{
    return large_memory_allocate(bytes ? bytes : 64);
}

#define TRANSPOSED_ROWS ((size_t)16) /* read side by side: their lines stay in the L1 cache */

/* out[tap][channel][n] = from[n][channel][tap]: one row per item of an unfolded window. */
static void transpose_taps(const cpu_weights_key *key, size_t item_bytes, const char *from,
                           char *out)
{
    size_t channels = key->k / key->taps, row = key->k * item_bytes;
    for (size_t first = 0; first < key->n; first += TRANSPOSED_ROWS) {
        size_t left = key->n - first, count = left < TRANSPOSED_ROWS ? left : TRANSPOSED_ROWS;
        const char *in = from + first * row;
        for (size_t c = 0; c < channels; c++)
            for (size_t t = 0; t < key->taps; t++, in += item_bytes) {
                char *to = out + ((t * channels + c) * key->n + first) * item_bytes;
                for (size_t j = 0; item_bytes == 1 && j < count; j++)
                    to[j] = in[j * row];
                for (size_t j = 0; item_bytes != 1 && j < count; j++)
                    memcpy(to + j * sizeof(float), in + j * row, sizeof(float));
            }
    }
}

/* A copy of the matrix with rows of n, as packing needs it; NULL when memory is out. */
static void *transposed(const cpu_weights_key *key, size_t item_bytes, const void *from)
{
    void *out = allocate(key->k * key->n * item_bytes);
    if (out)
        transpose_taps(key, item_bytes, (const char *)from + key->offset * item_bytes, out);
    return out;
}

static void *pack(const kernels *k, const cpu_weights_key *key, const void *from, size_t *bytes)
{
    bool is_f32 = key->format == CPU_WEIGHTS_GEMM_F32, is_transposed = key->taps > 1;
    size_t item_bytes = is_f32 ? sizeof(float) : 1;
    size_t row_stride = is_transposed ? key->n : key->row_stride;
    size_t column_stride = is_transposed ? 1 : key->column_stride;
    void *copy = is_transposed ? transposed(key, item_bytes, from) : NULL;
    if (is_transposed && !copy)
        return NULL;
    from = is_transposed ? copy : (const char *)from + key->offset * item_bytes;
    *bytes = is_f32 ? gemm_f32_packed_count(key->k, key->n) * sizeof(float)
                    : gemm_u8s8_packed_bytes(key->k, key->n);
    void *out = allocate(*bytes);
    if (out && is_f32)
        k->gemm_pack_f32(from, row_stride, column_stride, key->k, key->n, out);
    else if (out)
        k->gemm_pack_u8s8(from, row_stride, column_stride, key->k, key->n, out);
    free(copy);
    return out;
}

static void *pack_less_128(const kernels *k, const cpu_weights_key *key, size_t *bytes)
{
    size_t count = (size_t)tensor_count(key->constant);
    const uint8_t *from = key->constant->data;
    int8_t *less = allocate(count);
    for (size_t i = 0; less && i < count; i++)
        less[i] = (int8_t)(from[i] - 128);
    void *out = less ? pack(k, key, less, bytes) : NULL;
    free(less);
    return out;
}

/* [k][n] from [n][channels][taps] by `items`, then packed. */
static void *pack_items(const kernels *k, const cpu_weights_key *key, const int8_t *from,
                        size_t *bytes)
{
    size_t row = (size_t)tensor_count(key->constant) / key->n, channels = row / key->taps;
    size_t steps = key->k / CONV_U8S8_STEP_BYTES;
    int8_t *rows = allocate(key->k * key->n), *to = rows;
    *bytes = conv_u8s8_packed_bytes(steps, key->n);
    void *out = rows ? allocate(*bytes) : NULL;
    for (size_t i = 0; out && i < key->k; i++) {
        size_t tap = (size_t)key->items[i] / channels, channel = (size_t)key->items[i] % channels;
        for (size_t j = 0; j < key->n; j++)
            *to++ = key->items[i] < 0 ? 0 : from[j * row + channel * key->taps + tap];
    }
    if (out)
        k->conv_pack_u8s8(rows, steps, key->n, out);
    free(rows);
    return out;
}

static void *transform(const kernels *k, const cpu_weights_key *key, size_t *bytes)
{
    const tensor *t = key->constant;
    size_t count = (size_t)tensor_count(t);
    if (key->format == CPU_WEIGHTS_TAPS) {
        size_t item_bytes = t->dtype == DTYPE_I8 ? 1 : sizeof(float);
        cpu_weights_key all = *key;
        all.taps = key->k;
        assert(t->dtype == DTYPE_I8 || t->dtype == DTYPE_F32);
        *bytes = key->k * key->n * item_bytes;
        return transposed(&all, item_bytes, t->data);
    }
    if (key->format == CPU_WEIGHTS_GEMM_U8S8 && t->dtype == DTYPE_U8)
        return pack_less_128(k, key, bytes);
    if (key->format == CPU_WEIGHTS_GEMM_U8S8) {
        assert(t->dtype == DTYPE_I8);
        return pack(k, key, t->data, bytes);
    }
    if (key->format == CPU_WEIGHTS_CONV_U8S8) {
        assert(t->dtype == DTYPE_I8);
        return pack_items(k, key, t->data, bytes);
    }
    float *wide = NULL;
    const float *from = t->data;
    if (t->dtype != DTYPE_F32 || key->format == CPU_WEIGHTS_F32) {
        wide = allocate(count * sizeof(float));
        if (!wide)
            return NULL;
        cpu_load(CPU_COMPUTE_F32, t->dtype, t->data, 0, 1, count, wide);
        from = wide;
    }
    *bytes = count * sizeof(float);
    if (key->format == CPU_WEIGHTS_F32)
        return wide;
    void *out = pack(k, key, from, bytes);
    free(wide);
    return out;
}

/* The first of those at the address, or NULL. */
static const numbered *find_numbered(const cpu_weights *w, const void *data)
{
    size_t from = 0, to = w ? w->address_count : 0;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if ((uintptr_t)w->addresses[middle].data < (uintptr_t)data)
            from = middle + 1;
        else
            to = middle;
    }
    return w && from < w->address_count && w->addresses[from].data == data ? &w->addresses[from]
                                                                           : NULL;
}

bool cpu_weights_has_constant(const cpu_weights *w, const void *data)
{
    return find_numbered(w, data) != NULL;
}

/* All that is_same() compares, in numbers that the next start has, too. */
static weights_cache_item item_of(const entry *e)
{
    const cpu_weights_key *k = &e->key;
    return (weights_cache_item){.words = {e->address != NULL, e->number, e->hash[0], e->hash[1],
                                          k->format, k->offset, k->k, k->n, k->row_stride,
                                          k->column_stride, k->taps, k->arrangement[0],
                                          k->arrangement[1], k->arrangement[2], k->arrangement[3]},
                                .data = e->data,
                                .bytes = e->bytes};
}

/* Under the lock: takes what the entry holds from the file. `bytes` 0: of any size. */
static bool load_entry(cpu_weights *w, entry *e, size_t bytes)
{
    if (!w->is_cache_open && w->cache_folder)
        w->cache = weights_cache_open(&w->cache_name);
    w->is_cache_open = true;
    weights_cache_item item = item_of(e);
    if (!w->cache || !weights_cache_find(w->cache, &item) || (bytes && item.bytes != bytes))
        return false;
    e->data = (void *)(uintptr_t)item.data;
    e->bytes = item.bytes;
    e->is_mapped = true;
    return true;
}

void cpu_weights_keep(cpu_weights *w)
{
    pthread_mutex_lock(&w->lock);
    size_t count = 0;
    for (const entry *e = w->entries; e; e = e->next)
        count++;
    weights_cache_item *items = calloc(count + 1, sizeof *items);
    bool is_wanted = items && w->cache_folder && w->is_changed;
    count = 0;
    for (const entry *e = w->entries; is_wanted && e; e = e->next)
        items[count++] = item_of(e);
    w->is_changed = false;
    pthread_mutex_unlock(&w->lock);
    /* Entries stay as they are while `w` lives. */
    if (is_wanted && weights_cache_write(&w->cache_name, items, count) != STATUS_OK)
        log_warning("devices", "the packed weights are not cached: %s", status_message());
    free(items);
}

const void *cpu_weights_find(cpu_weights *w, const kernels *k, const cpu_weights_key *key)
{
    assert(key->constant && key->constant->data);
    const void *address = key->constant->data;
    uint64_t hash[2] = {0, 0};
    const numbered *source = find_numbered(w, address);
    if (!source) {
        hash_bytes(address, tensor_bytes(key->constant), hash);
        address = NULL;
    }
    pthread_mutex_lock(&w->lock);
    entry *e = w->entries;
    while (e && !is_same(e, key, address, hash))
        e = e->next;
    if (!e && (e = calloc(1, sizeof *e))) {
        *e = (entry){.key = *key, .address = address, .hash = {hash[0], hash[1]}};
        e->number = source ? source->number : 0;
        if (!load_entry(w, e, 0)) {
            e->data = transform(k, key, &e->bytes);
            w->is_changed = true;
        }
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

/* A new entry at the head of the list, filled from the cache or by `make`; NULL where that fails or
 * memory is out. */
static entry *add_table(cpu_weights *w, entry of, size_t bytes,
                        bool (*make)(const void *context, void *table), const void *context)
{
    entry *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    *e = of;
    if (!load_entry(w, e, bytes)) {
        e->data = allocate(bytes);
        e->bytes = bytes;
        if (!e->data || !make(context, e->data)) {
            free(e->data);
            free(e);
            return NULL;
        }
        w->is_changed = true;
    }
    e->next = w->entries;
    w->entries = e;
    w->bytes += bytes;
    w->table_count++;
    return e;
}

const void *cpu_weights_make(cpu_weights *w, const void *identity, size_t identity_bytes,
                             size_t bytes, bool (*make)(const void *context, void *table),
                             const void *context)
{
    const cpu_weights_key key = {.format = CPU_WEIGHTS_TABLE};
    uint64_t hash[2];
    hash_bytes(identity, identity_bytes, hash);
    pthread_mutex_lock(&w->lock);
    entry *e = w->entries;
    while (e && !is_same(e, &key, NULL, hash))
        e = e->next;
    if (!e && w->table_count < CPU_WEIGHTS_TABLES_MAX)
        e = add_table(w, (entry){.key = key, .hash = {hash[0], hash[1]}}, bytes, make, context);
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
