#include "models/loading/model_files.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "models/loading/foreign_files.h"
#include "models/loading/program_folder.h"
#include "models/whole/whole.h"

#define PATH_BYTES_MAX 4096

static bool is_file(const char *folder, const char *name, char path[PATH_BYTES_MAX])
{
    struct stat s;
    int n = snprintf(path, PATH_BYTES_MAX, "%s/%s", folder, name);
    return n > 0 && n < PATH_BYTES_MAX && stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

static bool is_onnx_name(const char *name)
{
    size_t bytes = strlen(name);
    return bytes > 5 && strcmp(name + bytes - 5, ".onnx") == 0;
}

/* Files of a folder that end in .onnx; the path of the last one seen. */
static int count_onnx(const char *folder, char path[PATH_BYTES_MAX])
{
    int found = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char candidate[PATH_BYTES_MAX];
        if (is_onnx_name(e->d_name) && is_file(folder, e->d_name, candidate)) {
            memcpy(path, candidate, sizeof candidate);
            found++;
        }
    }
    if (d != NULL)
        closedir(d);
    return found;
}

/* model.onnx, or the only .onnx file there is. */
static bool find_onnx(const char *folder, char path[PATH_BYTES_MAX])
{
    struct stat s;
    if (is_onnx_name(folder) && stat(folder, &s) == 0 && S_ISREG(s.st_mode)) {
        snprintf(path, PATH_BYTES_MAX, "%s", folder);
        return true;
    }
    return is_file(folder, "model.onnx", path) || count_onnx(folder, path) == 1;
}

/* Weights in formats that the importer refuses count: it says what to do about them. */
static bool is_hugging_face(const char *folder)
{
    static const char *const weights[] = {"model.safetensors", "model.safetensors.index.json",
                                          "pytorch_model.bin", "pytorch_model.bin.index.json",
                                          "tf_model.h5",       "flax_model.msgpack"};
    char path[PATH_BYTES_MAX];
    if (!is_file(folder, "config.json", path))
        return false;
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++)
        if (is_file(folder, weights[i], path))
            return true;
    return false;
}

bool model_files_exist(const char *folder)
{
    char path[PATH_BYTES_MAX];
    return find_onnx(folder, path) || is_hugging_face(folder) || program_folder_has(folder);
}

const char *model_files_hint(const char *folder)
{
    char path[PATH_BYTES_MAX], inner[PATH_BYTES_MAX];
    if (count_onnx(folder, path) > 1)
        return "; it has several .onnx files: name the path of one, or call it model.onnx";
    if (snprintf(inner, sizeof inner, "%s/onnx", folder) < (int)sizeof inner &&
        count_onnx(inner, path) > 0)
        return "; its folder onnx has .onnx files: name the path of one";
    const char *advice = foreign_files_advice(folder);
    if (advice[0] == 0 && is_file(folder, "config.json", path))
        return "; it has a config.json without model.safetensors";
    return advice;
}

status model_files_import(model *m, const char *folder, const manifest *file, bool copies_files,
                          bool *is_hugging_face_model)
{
    graph_import_options options = {.fixed_dims = file->fixed_dims,
                                    .fixed_dim_count = file->fixed_dim_count,
                                    .copies_files = copies_files};
    char path[PATH_BYTES_MAX];
    graph *g = NULL;
    status failure;
    *is_hugging_face_model = false;
    if (find_onnx(folder, path)) {
        m->platform = "onnx";
        failure = graph_import_onnx(path, &options, &g);
    } else if (is_hugging_face(folder)) {
        m->platform = "hugging_face";
        *is_hugging_face_model = true;
        failure = graph_import_hugging_face(folder, file->pooling, &options, &g);
    } else if (program_folder_has(folder)) {
        return program_folder_open(m, folder, file);
    } else {
        return status_fail(STATUS_NOT_FOUND,
                           "%s: no model.onnx, no config.json with model.safetensors, and no "
                           "program.<bucket>.mlir%s",
                           folder, model_files_hint(folder));
    }
    if (failure)
        return failure;
    m->graph = g;
    return whole_examine(m);
}
