#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "models/loading/foreign_files.h"
#include "tests/support/temporary.h"

Test(foreign_files, each_format_has_its_advice)
{
    static const char *const cases[][2] = {{"saved_model.pb", "SavedModel"},
                                           {"a.pt", "PyTorch"},
                                           {"a.pth", "PyTorch"},
                                           {"a.bin", "PyTorch"},
                                           {"a.plan", "TensorRT"},
                                           {"a.ENGINE", "TensorRT"},
                                           {"a.gguf", "GGUF"},
                                           {"a.tflite", "Lite"},
                                           {"a.h5", "Keras"},
                                           {"a.keras", "Keras"},
                                           {"a.xml", "OpenVINO"},
                                           {"a.mlmodel", "Core ML"},
                                           {"a.pkl", "skl2onnx"},
                                           {"a.safetensors", "config"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char root[TEMPORARY_FOLDER_BYTES], path[200];
        temporary_make(root);
        cr_assert_str_eq(foreign_files_advice(root), "");
        temporary_write_text(root, "notes.txt", "x");
        cr_assert_str_eq(foreign_files_advice(root), "");
        temporary_write_text(root, cases[i][0], "x");
        cr_assert(strstr(foreign_files_advice(root), cases[i][1]), "%s", cases[i][0]);
        snprintf(path, sizeof path, "%s/%s", root, cases[i][0]);
        cr_assert(strstr(foreign_files_advice(path), cases[i][1]), "%s", path);
        temporary_remove(root);
    }
    cr_assert_str_eq(foreign_files_advice("/none/such"), "");
}

/* What says most is told: an OpenVINO model is an .xml and a .bin. */
Test(foreign_files, the_most_telling_name_decides)
{
    char root[TEMPORARY_FOLDER_BYTES];
    temporary_make(root);
    temporary_write_text(root, "model.bin", "x");
    temporary_write_text(root, "model.xml", "x");
    cr_assert(strstr(foreign_files_advice(root), "OpenVINO"));
    temporary_write_text(root, "saved_model.pb", "x");
    cr_assert(strstr(foreign_files_advice(root), "SavedModel"));
    temporary_remove(root);
}
