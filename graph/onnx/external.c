#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/file_store.h"
#include "graph/onnx/importer.h"

/* External data (onnx ExternalData.md): key-value entries "location", "offset", "length". The model
 * file is not trusted: the location may only name files in its folder. A symbolic link is followed
 * when its target is in that folder, or in the folder of the file that the model file itself links
 * to: the Hugging Face cache has that layout. */

static const char *find_entry(const Onnx__Tensor *p, const char *key)
{
    for (size_t i = 0; i < p->n_external_data; i++)
        if (p->external_data[i]->key != NULL && strcmp(p->external_data[i]->key, key) == 0)
            return p->external_data[i]->value;
    return NULL;
}

static status read_number(const Onnx__Tensor *p, const char *key, uint64_t otherwise, uint64_t *out)
{
    const char *text = find_entry(p, key);
    *out = otherwise;
    if (text == NULL || text[0] == 0)
        return STATUS_OK;
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != 0 || errno != 0)
        return status_fail(STATUS_CORRUPT, "external data has the %s '%s'", key, text);
    *out = number;
    return STATUS_OK;
}

static bool is_plain_path(const char *path)
{
    if (path[0] == 0 || path[0] == '/')
        return false;
    for (const char *part = path; part != NULL;) {
        size_t bytes = strcspn(part, "/");
        if (bytes == 2 && memcmp(part, "..", 2) == 0)
            return false;
        part = part[bytes] == '/' ? part + bytes + 1 : NULL;
    }
    return true;
}

static bool is_inside(const char *path, const char *folder)
{
    char real[PATH_MAX];
    if (folder == NULL || realpath(folder, real) == NULL)
        return false;
    size_t bytes = strlen(real);
    return strncmp(path, real, bytes) == 0 && (path[bytes] == '/' || bytes == 1);
}

static status resolve(const onnx_importer *m, const char *location, char real[PATH_MAX])
{
    if (m->folder == NULL)
        return status_fail(STATUS_UNSUPPORTED, "external data; supported only for models in files");
    if (!is_plain_path(location))
        return status_fail(STATUS_CORRUPT,
                           "external data at '%s', which is not a path inside the model's folder",
                           location);
    char path[PATH_MAX];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", m->folder, location) >= sizeof path)
        return status_fail(STATUS_CORRUPT, "external data has a path longer than %d", PATH_MAX);
    if (realpath(path, real) == NULL)
        return status_fail(errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO,
                           "external data file %s: %s%s", path, strerror(errno),
                           errno == ENOENT ? "; the model's weights are in files beside it: copy "
                                             "them with it"
                                           : "");
    if (!is_inside(real, m->folder) && !is_inside(real, m->real_folder))
        return status_fail(STATUS_CORRUPT,
                           "external data at '%s', a link that leaves the model's folder",
                           location);
    return STATUS_OK;
}

status onnx_find_external(onnx_importer *m, const Onnx__Tensor *p, size_t bytes,
                          const uint8_t **data)
{
    char path[PATH_MAX];
    uint64_t offset, length;
    const char *location = find_entry(p, "location");
    if (p->data_location != ONNX__TENSOR__LOCATION__EXTERNAL || location == NULL)
        return status_fail(STATUS_CORRUPT, "external data without a location");
    status s = read_number(p, "offset", 0, &offset);
    if (s == STATUS_OK)
        s = read_number(p, "length", bytes, &length);
    if (s == STATUS_OK)
        s = resolve(m, location, path);
    if (s)
        return s;
    if (length != bytes)
        return status_fail(STATUS_CORRUPT, "external data of %llu bytes where the shape has %zu",
                           (unsigned long long)length, bytes);
    const uint8_t *file;
    size_t file_bytes;
    s = file_store_open(m->graph, path, m->options.file_bytes_max, &file, &file_bytes);
    if (s)
        return s;
    if (offset > file_bytes || bytes > file_bytes - offset)
        return status_fail(
            STATUS_CORRUPT, "external data at bytes %llu to %llu of '%s', which has %zu",
            (unsigned long long)offset, (unsigned long long)offset + bytes, location, file_bytes);
    *data = bytes > 0 ? file + offset : NULL;
    return STATUS_OK;
}
