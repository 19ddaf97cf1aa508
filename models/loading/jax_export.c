#include "models/loading/jax_export.h"

#include <stdio.h>
#include <string.h>

/* Fields of the table Exported, by slot. */
enum {
    FIELD_DEVICES_SHORT = 6, /* i16, before 2025-11 */
    FIELD_PLATFORMS = 9,
    FIELD_ORDERED_EFFECTS = 10,
    FIELD_DISABLED_CHECKS = 12,
    FIELD_MODULE = 13,
    FIELD_CONVENTION = 14,
    FIELD_KEPT = 15,
    FIELD_GLOBAL_CONSTANTS = 16,
    FIELD_DEVICES = 18,
    FIELD_IN_AVALS = 3,
    FIELD_IN_AVAL_INDICES = 22, /* since 2026-04 */
};
/* Fields of the table DisabledSafetyCheck. */
enum { FIELD_CHECK_KIND = 0, FIELD_CHECK_TARGET = 1 };
#define CHECK_CUSTOM_CALL 1

#define ARGUMENTS_MAX 65535

/* --- FlatBuffers: offsets are relative; nothing is read outside the file --- */

typedef struct buffer {
    const uint8_t *data;
    size_t bytes;
} buffer;

/* A little-endian number of `size` bytes; 0 outside the file. */
static uint32_t number_at(const buffer *b, size_t at, size_t size)
{
    uint32_t value = 0;
    if (size > b->bytes || at > b->bytes - size)
        return 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint32_t)b->data[at + i] << (8 * i);
    return value;
}

/* Where a field of the table at `table` lies, or 0: it is absent. */
static size_t field_of(const buffer *b, size_t table, int slot)
{
    int32_t back = (int32_t)number_at(b, table, 4);
    int64_t vtable = (int64_t)table - back;
    if (vtable < 0 || (uint64_t)vtable >= b->bytes)
        return 0;
    size_t entry = 4 + 2 * (size_t)slot;
    if (entry + 2 > number_at(b, (size_t)vtable, 2))
        return 0;
    uint32_t offset = number_at(b, (size_t)vtable + entry, 2);
    return offset == 0 || table + offset >= b->bytes ? 0 : table + offset;
}

/* What the offset at `at` points to, or 0. */
static size_t follow(const buffer *b, size_t at)
{
    uint32_t offset = number_at(b, at, 4);
    return at == 0 || offset == 0 || offset >= b->bytes - at ? 0 : at + offset;
}

typedef struct vector {
    const uint8_t *items;
    size_t at; /* of the first item */
    size_t count;
} vector;

/* A vector that is a field, of items of `size` bytes; empty if it is absent. False: damaged. */
static bool vector_of(const buffer *b, size_t table, int slot, size_t size, vector *out)
{
    *out = (vector){0};
    size_t field = field_of(b, table, slot);
    if (field == 0)
        return true;
    size_t at = follow(b, field);
    if (at == 0 || b->bytes - at < 4)
        return false;
    size_t count = number_at(b, at, 4);
    if (count > (b->bytes - at - 4) / size)
        return false;
    *out = (vector){b->data + at + 4, at + 4, count};
    return true;
}

static uint32_t scalar_of(const buffer *b, size_t table, int slot, size_t size)
{
    size_t field = field_of(b, table, slot);
    return field == 0 ? 0 : number_at(b, field, size);
}

static size_t root_of(const buffer *b)
{
    return b->bytes < 8 ? 0 : number_at(b, 0, 4);
}

static bool is_artifact(const vector *v)
{
    return v->count >= 4 && memcmp(v->items, "ML\xefR", 4) == 0;
}

bool jax_export_is(const uint8_t *data, size_t bytes)
{
    const buffer b = {data, bytes};
    vector module;
    size_t root = root_of(&b);
    return root >= 4 && root < bytes && vector_of(&b, root, FIELD_MODULE, 1, &module) &&
           is_artifact(&module);
}

/* --- custom calls --- */

/* Those whose meaning jax.export keeps from release to release: names, and beginnings of names
 * (of linear algebra on CPUs and GPUs). */
static const char *const kept_calls[] = {"Sharding",
                                         "SPMDFullToShardShape",
                                         "SPMDShardToFullShape",
                                         "annotate_device_placement",
                                         "cu_threefry2x32_ffi",
                                         "hip_threefry2x32_ffi",
                                         "Eigh",
                                         "Qr",
                                         "ProductOfElementaryHouseholderReflectors",
                                         "LuDecomposition",
                                         "ApproxTopK",
                                         "stablehlo.dynamic_approx_top_k",
                                         "tpu_custom_call",
                                         "AllocateBuffer",
                                         "mosaic_gpu_v2",
                                         "stablehlo.dynamic_reduce_window",
                                         "stablehlo.dynamic_rng_bit_generator",
                                         "stablehlo.dynamic_top_k",
                                         "shape_assertion"};
static const char *const kept_families[] = {"lapack_", "cusolver_", "hipsolver_", "cusparse_",
                                            "cu_lu_",  "hip_lu_",   "cublas_",    "hipblas_"};

static bool is_kept_call(const char *name)
{
    for (size_t i = 0; i < sizeof kept_calls / sizeof *kept_calls; i++)
        if (strcmp(name, kept_calls[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof kept_families / sizeof *kept_families; i++)
        if (strncmp(name, kept_families[i], strlen(kept_families[i])) == 0)
            return true;
    return false;
}

/* Adds `name` to "a, b" unless it is there, or its meaning is kept. */
static void add_call(const uint8_t *name, size_t bytes, char out[200])
{
    char text[80];
    size_t used = strlen(out);
    snprintf(text, sizeof text, "%.*s", (int)(bytes < 79 ? bytes : 79), (const char *)name);
    for (char *c = text; *c != 0; c++)
        if (*c < ' ' || *c == 127) /* the file is a stranger's */
            *c = '?';
    if (text[0] == 0 || is_kept_call(text) || strstr(out, text) != NULL || used > 110)
        return;
    snprintf(out + used, 200 - used, "%s%s", used > 0 ? ", " : "", text);
}

static bool is_name_end(uint8_t c)
{
    return c == '(' || c == ' ' || c == '"' || c == '\n' || c == ',' || c == '}';
}

/* `custom_call @name(` as it is printed, and `call_target_name = "name"` of the general form. */
void jax_export_find_custom_calls(const uint8_t *text, size_t bytes, char out[200])
{
    static const char *const marks[] = {"custom_call @", "call_target_name = \""};
    out[0] = 0;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const uint8_t *at = text, *end = text + bytes;
        size_t length = strlen(marks[i]);
        while ((at = memmem(at, (size_t)(end - at), marks[i], length)) != NULL) {
            at += length;
            const uint8_t *name = at + (at < end && *at == '"');
            for (at = name; at < end && !is_name_end(*at); at++)
                ;
            add_call(name, (size_t)(at - name), out);
        }
    }
}

/* What JAX was told to let pass at export. */
static void read_disabled_checks(const buffer *b, const vector *checks, char out[200])
{
    for (size_t i = 0; i < checks->count; i++) {
        size_t table = follow(b, checks->at + 4 * i);
        vector target;
        if (table != 0 && scalar_of(b, table, FIELD_CHECK_KIND, 1) == CHECK_CUSTOM_CALL &&
            vector_of(b, table, FIELD_CHECK_TARGET, 1, &target))
            add_call(target.items, target.count, out);
    }
}

/* --- what a server can run --- */

static status check_convention(const char *name, int convention)
{
    if (convention > JAX_EXPORT_CONVENTION_MOST)
        return status_fail(STATUS_UNSUPPORTED,
                           "%s: calling convention %d of jax.export is newer than this server, "
                           "which knows %d to %d: export it with an older JAX, or with "
                           "JAX_EXPORT_CALLING_CONVENTION_VERSION=%d, or use a newer server",
                           name, convention, JAX_EXPORT_CONVENTION_LEAST,
                           JAX_EXPORT_CONVENTION_MOST, JAX_EXPORT_CONVENTION_MOST);
    if (convention < JAX_EXPORT_CONVENTION_LEAST)
        return status_fail(STATUS_UNSUPPORTED,
                           "%s: calling convention %d of jax.export is older than this server "
                           "reads, which knows %d to %d: export it again with a newer JAX",
                           name, convention, JAX_EXPORT_CONVENTION_LEAST,
                           JAX_EXPORT_CONVENTION_MOST);
    return STATUS_OK;
}

static status check_table(const buffer *b, size_t root, const char *name)
{
    vector platforms, effects;
    status s = check_convention(name, (int)scalar_of(b, root, FIELD_CONVENTION, 2));
    if (s)
        return s;
    if (!vector_of(b, root, FIELD_PLATFORMS, 4, &platforms) ||
        !vector_of(b, root, FIELD_ORDERED_EFFECTS, 4, &effects))
        return status_fail(STATUS_CORRUPT, "%s: a damaged jax.export.Exported", name);
    uint32_t devices = scalar_of(b, root, FIELD_DEVICES, 4);
    if (devices == 0)
        devices = scalar_of(b, root, FIELD_DEVICES_SHORT, 2);
    if (devices > 1)
        return status_fail(STATUS_UNSUPPORTED,
                           "%s: exported for %u devices at once; a program runs on one: export it "
                           "without shardings",
                           name, devices);
    if (platforms.count > 1)
        return status_fail(STATUS_UNSUPPORTED,
                           "%s: exported for %zu platforms at once, which `main` takes as an "
                           "argument more: export it for one, jax.export.export(f, "
                           "platforms=[...])",
                           name, platforms.count);
    if (effects.count > 0)
        return status_fail(STATUS_UNSUPPORTED,
                           "%s: has ordered effects (callbacks, prints), which a server does not "
                           "run: export it without",
                           name);
    if (scalar_of(b, root, FIELD_GLOBAL_CONSTANTS, 1) != 0)
        return status_fail(STATUS_UNSUPPORTED,
                           "%s: has symbolic shapes: export a program with the sizes of each "
                           "bucket",
                           name);
    return STATUS_OK;
}

/* How many arguments the function has: newer files list them by index, older ones one by one. */
static bool count_arguments(const buffer *b, size_t root, int *out)
{
    vector indices, avals;
    if (!vector_of(b, root, FIELD_IN_AVAL_INDICES, 4, &indices) ||
        !vector_of(b, root, FIELD_IN_AVALS, 4, &avals))
        return false;
    size_t count = indices.count > 0 ? indices.count : avals.count;
    *out = (int)count;
    return count <= ARGUMENTS_MAX;
}

status jax_export_open(const char *name, const uint8_t *data, size_t bytes, jax_export *out)
{
    const buffer b = {data, bytes};
    jax_export e = {0};
    vector module, kept, checks;
    size_t root = root_of(&b);
    if (!jax_export_is(data, bytes) || !vector_of(&b, root, FIELD_MODULE, 1, &module) ||
        !vector_of(&b, root, FIELD_KEPT, 2, &kept) ||
        !vector_of(&b, root, FIELD_DISABLED_CHECKS, 4, &checks) ||
        !count_arguments(&b, root, &e.argument_count) || kept.count > ARGUMENTS_MAX)
        return status_fail(STATUS_CORRUPT, "%s: a damaged jax.export.Exported", name);
    status s = check_table(&b, root, name);
    if (s)
        return s;
    e.module = module.items;
    e.module_bytes = module.count;
    e.kept = kept.items;
    e.kept_count = (int)kept.count;
    for (int i = 0; i < e.kept_count; i++)
        if (jax_export_kept(&e, i) >= e.argument_count ||
            (i > 0 && jax_export_kept(&e, i) <= jax_export_kept(&e, i - 1)))
            return status_fail(STATUS_CORRUPT, "%s: a damaged jax.export.Exported", name);
    read_disabled_checks(&b, &checks, e.custom_calls);
    *out = e;
    return STATUS_OK;
}

int jax_export_kept(const jax_export *e, int i)
{
    return e->kept[2 * i] | e->kept[2 * i + 1] << 8;
}
