#include "tests/support/temporary.h"
#include "tests/unit/graph/onnx/builder.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every model of the shared set. */
Test(import_onnx_files, imports_every_shared_model)
{
    const char *shared = getenv("PENSTOCK_SHARED");
    char folder[400], path[800];
    if (shared == NULL)
        shared = PENSTOCK_SOURCE_DIR "/../shared";
    snprintf(folder, sizeof folder, "%s/models/models", shared);
    DIR *d = opendir(folder);
    if (d == NULL)
        cr_skip_test("no shared models: set PENSTOCK_SHARED");
    int count = 0;
    for (struct dirent *entry; (entry = readdir(d)) != NULL;) {
        if (strstr(entry->d_name, ".onnx") == NULL)
            continue;
        graph *g = NULL;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        status s = graph_import_onnx(path, NULL, &g);
        cr_assert_eq(s, STATUS_OK, "%s", status_message());
        cr_assert_gt(g->node_count, 0);
        cr_assert_eq(g->values[g->inputs[0]].shape.dims[0].batch, 1);
        graph_destroy(g);
        count++;
    }
    closedir(d);
    cr_assert_gt(count, 0);
}

static char folder[TEMPORARY_FOLDER_BYTES];

static void make_folder(void)
{
    temporary_make(folder);
}

static void remove_folder(void)
{
    temporary_remove(folder);
}

TestSuite(import_onnx_external, .init = make_folder, .fini = remove_folder);

static onnx_builder *begin_external(const char *location, const char *offset, const char *length)
{
    onnx_builder *b = onnx_begin(17);
    int64_t dims[] = {2, 2};
    b->folder = folder;
    onnx_add_input(b, "x", NAMES("batch", "2"));
    Onnx__Tensor *t = onnx_add_tensor(b, onnx_make_tensor("w", 1, 2, dims));
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR__LOCATION__EXTERNAL;
    onnx_set_external(t, "location", location);
    if (offset != NULL)
        onnx_set_external(t, "offset", offset);
    if (length != NULL)
        onnx_set_external(t, "length", length);
    onnx_add(b, "MatMul", NAMES("x", "w"), NAMES("y"));
    onnx_add_output(b, "y");
    return b;
}

Test(import_onnx_external, reads_a_range_of_a_file)
{
    float data[] = {9, 1, 2, 3, 4, 9};
    temporary_write(folder, "weights.bin", data, sizeof data);
    graph *g = onnx_expect(begin_external("weights.bin", "4", "16"));
    cr_assert_str_eq(onnx_constant_text(g, g->nodes[0].inputs[1]), "1,2,3,4");
    graph_destroy(g);
    temporary_write(folder, "odd.bin", (char *)data + 1,
                    sizeof data - 1); /* begins at byte 3: unaligned */
    g = onnx_expect(begin_external("odd.bin", "3", NULL));
    cr_assert_str_eq(onnx_constant_text(g, g->nodes[0].inputs[1]), "1,2,3,4");
    graph_destroy(g);
}

Test(import_onnx_external, rejects_paths_that_leave_the_folder)
{
    static const char *const paths[] = {"/etc/passwd", "../w.bin", "a/../../w.bin",
                                        "..",          "",         "a/.."};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        onnx_expect_failure(begin_external(paths[i], NULL, NULL), STATUS_CORRUPT,
                            NAMES("'w'", "inside the model's folder"));
    char path[200];
    snprintf(path, sizeof path, "%s/link.bin", folder);
    cr_assert_eq(symlink("/etc/passwd", path), 0);
    onnx_expect_failure(begin_external("link.bin", NULL, NULL), STATUS_CORRUPT,
                        NAMES("'w'", "leaves the model's folder"));
}

Test(import_onnx_external, rejects_ranges_that_the_file_lacks)
{
    float data[] = {1, 2, 3, 4};
    temporary_write(folder, "weights.bin", data, sizeof data);
    onnx_expect_failure(begin_external("weights.bin", "4", NULL), STATUS_CORRUPT, NAMES("'w'"));
    onnx_expect_failure(begin_external("weights.bin", "18446744073709551615", NULL), STATUS_CORRUPT,
                        NAMES("'w'"));
    onnx_expect_failure(begin_external("weights.bin", "-4", NULL), STATUS_CORRUPT, NAMES("-4"));
    onnx_expect_failure(begin_external("weights.bin", "4x", NULL), STATUS_CORRUPT, NAMES("4x"));
    onnx_expect_failure(begin_external("weights.bin", "0", "12"), STATUS_CORRUPT, NAMES("12 "));
    onnx_expect_failure(begin_external("absent.bin", NULL, NULL), STATUS_NOT_FOUND,
                        NAMES("absent.bin"));
    onnx_builder *b = begin_external("weights.bin", NULL, NULL);
    b->folder = NULL;
    onnx_expect_failure(b, STATUS_UNSUPPORTED, NAMES("external data"));
}

/* The layout of the Hugging Face cache: model and weights are links to files of one other folder.
 */
Test(import_onnx_external, follows_links_to_where_the_model_file_really_lies)
{
    char path[200];
    size_t bytes;
    float data[] = {1, 2, 3, 4};
    snprintf(path, sizeof path, "%s/blobs", folder);
    cr_assert_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/snapshot", folder);
    cr_assert_eq(mkdir(path, 0700), 0);
    uint8_t *model = onnx_pack(begin_external("w.bin", NULL, NULL), &bytes);
    temporary_write(folder, "blobs/aaa", model, bytes);
    temporary_write(folder, "blobs/bbb", data, sizeof data);
    snprintf(path, sizeof path, "%s/snapshot/w.bin", folder);
    cr_assert_eq(symlink("../blobs/bbb", path), 0);
    snprintf(path, sizeof path, "%s/snapshot/model.onnx", folder);
    cr_assert_eq(symlink("../blobs/aaa", path), 0);
    graph *g = NULL;
    cr_assert_eq(graph_import_onnx(path, NULL, &g), STATUS_OK, "%s", status_message());
    graph_destroy(g);
}

Test(import_onnx_external, names_the_file_in_every_error)
{
    char path[200];
    graph *g = NULL;
    temporary_write(folder, "model.onnx", "not a model", 11);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    cr_assert_eq(graph_import_onnx(path, NULL, &g), STATUS_CORRUPT);
    cr_assert(strstr(status_message(), path) != NULL);
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n";
    temporary_write(folder, "model.onnx", pointer, sizeof pointer - 1);
    cr_assert_eq(graph_import_onnx(path, NULL, &g), STATUS_CORRUPT);
    cr_assert(strstr(status_message(), "git lfs pull") != NULL, "%s", status_message());
    cr_assert_eq(graph_import_onnx("/nowhere.onnx", NULL, &g), STATUS_NOT_FOUND);
    cr_assert(strstr(status_message(), "/nowhere.onnx") != NULL);
    graph_import_options options = {.file_bytes_max = 5};
    cr_assert_eq(graph_import_onnx(path, &options, &g), STATUS_TOO_LARGE);
}
