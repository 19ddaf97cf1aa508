#include "tests/support/npz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/io/file_reader.h"

#define FILE_BYTES_MAX ((size_t)1 << 30)

static uint32_t read_u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t read_u32(const uint8_t *p)
{
    return read_u16(p) | read_u16(p + 2) << 16;
}

static status inflate_whole(const uint8_t *in, size_t in_bytes, uint8_t *out, size_t out_bytes)
{
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)in,
                  .avail_in = (uInt)in_bytes,
                  .next_out = out,
                  .avail_out = (uInt)out_bytes};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return status_fail(STATUS_OUT_OF_MEMORY, "zlib");
    int code = inflate(&z, Z_FINISH);
    inflateEnd(&z);
    if (code != Z_STREAM_END || z.avail_out != 0)
        return status_fail(STATUS_CORRUPT, "an array that zlib cannot inflate");
    return STATUS_OK;
}

static bool dtype_of(const char *text, dtype *out)
{
    static const struct {
        const char *text;
        dtype type;
    } known[] = {{"|b1", DTYPE_BOOL}, {"|u1", DTYPE_U8},  {"|i1", DTYPE_I8},  {"<u2", DTYPE_U16},
                 {"<i2", DTYPE_I16},  {"<u4", DTYPE_U32}, {"<i4", DTYPE_I32}, {"<u8", DTYPE_U64},
                 {"<i8", DTYPE_I64},  {"<f2", DTYPE_F16}, {"<f4", DTYPE_F32}, {"<f8", DTYPE_F64}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(text, known[i].text, 3) == 0) {
            *out = known[i].type;
            return true;
        }
    return false;
}

/* numpy.lib.format: magic, version, header length, a Python dict in text, data. */
static status parse_npy(const uint8_t *data, size_t bytes, tensor *out)
{
    if (bytes < 12 || memcmp(data, "\x93NUMPY", 6) != 0)
        return status_fail(STATUS_CORRUPT, "not an .npy array");
    size_t start = data[6] == 1 ? 10 : 12;
    size_t length = data[6] == 1 ? read_u16(data + 8) : read_u32(data + 8);
    char header[1024];
    if (start + length > bytes || length >= sizeof header)
        return status_fail(STATUS_CORRUPT, "an .npy header that is too long");
    memcpy(header, data + start, length);
    header[length] = 0;
    const char *descr = strstr(header, "'descr': '"), *shape = strstr(header, "'shape': (");
    dtype type;
    if (!descr || !shape || !dtype_of(descr + 10, &type) || strstr(header, "'fortran_order': True"))
        return status_fail(STATUS_UNSUPPORTED, "an array of %s", header);
    int64_t dims[TENSOR_RANK_MAX];
    int rank = 0;
    for (char *at = (char *)(uintptr_t)shape + 10; *at && *at != ')' && rank < TENSOR_RANK_MAX;) {
        char *end;
        long long dim = strtoll(at, &end, 10);
        if (end == at) {
            at++;
            continue;
        }
        dims[rank++] = dim;
        at = end;
    }
    status s = tensor_set_shape(out, type, rank, dims);
    if (s)
        return s;
    if (tensor_bytes(out) != bytes - start - length)
        return status_fail(STATUS_CORRUPT, "an array cut short");
    out->data = (uint8_t *)(uintptr_t)data + start + length;
    return STATUS_OK;
}

/* One entry of the central directory (APPNOTE 4.3.12) at `entry`. */
static status read_entry(npz *file, const uint8_t *zip, size_t zip_bytes, const uint8_t *entry)
{
    uint32_t method = read_u16(entry + 10), packed = read_u32(entry + 20);
    uint32_t bytes = read_u32(entry + 24), name_bytes = read_u16(entry + 28);
    uint32_t offset = read_u32(entry + 42);
    npz_array *array = &file->arrays[file->count];
    size_t stem = name_bytes > 4 ? name_bytes - 4 : name_bytes;
    array->name = arena_copy_string(&file->memory, (const char *)entry + 46, stem);
    if ((size_t)offset + 30 > zip_bytes)
        return status_fail(STATUS_CORRUPT, "%s lies outside the file", array->name);
    const uint8_t *local = zip + offset;
    const uint8_t *data = local + 30 + read_u16(local + 26) + read_u16(local + 28);
    if (data + packed > zip + zip_bytes)
        return status_fail(STATUS_CORRUPT, "%s lies outside the file", array->name);
    /* 64 bytes of header padding keep NumPy's own 64-byte data alignment. */
    uint8_t *out = arena_allocate_aligned(&file->memory, (size_t)bytes + 1, 64);
    if (!out)
        return status_fail(STATUS_OUT_OF_MEMORY, "%s", array->name);
    status s = STATUS_OK;
    if (method == 8)
        s = inflate_whole(data, packed, out, bytes);
    else if (method == 0 && packed == bytes)
        memcpy(out, data, bytes);
    else
        s = status_fail(STATUS_UNSUPPORTED, "zip method %u", method);
    if (!s)
        s = parse_npy(out, bytes, &array->value);
    if (s)
        return status_prefix(s, "%s", array->name);
    file->count++;
    return STATUS_OK;
}

status npz_open(npz *file, const char *path)
{
    void *data = NULL;
    size_t bytes = 0;
    *file = (npz){0};
    status s = file_reader_read_whole(path, FILE_BYTES_MAX, &data, &bytes);
    if (s)
        return s;
    const uint8_t *zip = data, *end = NULL;
    for (size_t i = bytes >= 22 ? bytes - 22 + 1 : 0; i-- > 0 && !end;)
        if (memcmp(zip + i, "PK\5\6", 4) == 0)
            end = zip + i;
    if (!end) {
        s = status_fail(STATUS_CORRUPT, "not a zip file");
        goto fail;
    }
    uint32_t count = read_u16(end + 10), at = read_u32(end + 16);
    file->arrays = arena_allocate_zeroed(&file->memory, count + 1, sizeof file->arrays[0]);
    for (uint32_t i = 0; i < count; i++) {
        if ((size_t)at + 46 > bytes || memcmp(zip + at, "PK\1\2", 4) != 0) {
            s = status_fail(STATUS_CORRUPT, "a broken directory");
            goto fail;
        }
        s = read_entry(file, zip, bytes, zip + at);
        if (s)
            goto fail;
        at += 46 + read_u16(zip + at + 28) + read_u16(zip + at + 30) + read_u16(zip + at + 32);
    }
    free(data);
    return STATUS_OK;
fail:
    free(data);
    npz_close(file);
    return status_prefix(s, "%s", path);
}

void npz_close(npz *file)
{
    arena_dispose(&file->memory);
    *file = (npz){0};
}

const tensor *npz_find(const npz *file, const char *format, ...)
{
    char name[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->arrays[i].name, name) == 0)
            return &file->arrays[i].value;
    return NULL;
}
