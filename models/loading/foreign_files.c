#include "models/loading/foreign_files.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define SAVED_MODEL                                                                                \
    "; it has a TensorFlow SavedModel, which this server does not take: "                          \
    "`python -m tf2onnx.convert --saved-model FOLDER --output model.onnx` exports it as ONNX"
#define TORCH                                                                                      \
    "; it has a PyTorch file, which this server does not take: `torch.onnx.export(model, inputs, " \
    "\"model.onnx\")` exports it as ONNX, `model.save_pretrained(FOLDER)` writes the safetensors " \
    "of a Hugging Face encoder"
#define TENSORRT                                                                                   \
    "; it has a TensorRT engine, which runs on one kind of GPU only: serve the ONNX file that it " \
    "was built from"
#define GGUF                                                                                       \
    "; it has a GGUF file, which this server does not take: export the model it was converted "    \
    "from, with `optimum-cli export onnx --model FOLDER OUT`"
#define TFLITE                                                                                     \
    "; it has a TensorFlow Lite file, which this server does not take: "                           \
    "`python -m tf2onnx.convert --tflite FILE --output model.onnx` exports it as ONNX"
#define KERAS                                                                                      \
    "; it has a Keras file, which this server does not take: `model.export(\"model.onnx\", "       \
    "format=\"onnx\")` in Keras 3, or tf2onnx, exports it as ONNX"
#define PICKLE                                                                                     \
    "; it has a pickled Python object, which this server does not take: skl2onnx exports "         \
    "scikit-learn models as ONNX"
#define OPENVINO                                                                                   \
    "; it has an OpenVINO model, which this server does not take: serve the ONNX file that it "    \
    "was converted from"
#define CORE_ML                                                                                    \
    "; it has a Core ML model, which this server does not take: serve the ONNX file or the model " \
    "that it was converted from"
#define SAFETENSORS                                                                                \
    "; it has safetensors without a config.json: `model.save_pretrained(FOLDER)` writes both"

/* The first that fits is told: those that say most stand first. */
static const struct format {
    const char *ending; /* of a file's name; a whole name if it begins with '=' */
    const char *advice;
} formats[] = {
    {"=saved_model.pb", SAVED_MODEL},
    {"=saved_model.pbtxt", SAVED_MODEL},
    {"=model.savedmodel", SAVED_MODEL},
    {".gguf", GGUF},
    {".plan", TENSORRT},
    {".engine", TENSORRT},
    {".trt", TENSORRT},
    {".tflite", TFLITE},
    {".h5", KERAS},
    {".hdf5", KERAS},
    {".keras", KERAS},
    {".pt", TORCH},
    {".pth", TORCH},
    {".pt2", TORCH},
    {".ckpt", TORCH},
    {"=pytorch_model.bin", TORCH},
    {".xml", OPENVINO},
    {".bin", TORCH},
    {".mlmodel", CORE_ML},
    {".mlpackage", CORE_ML},
    {".pkl", PICKLE},
    {".pickle", PICKLE},
    {".joblib", PICKLE},
    {".safetensors", SAFETENSORS},
};

static bool fits(const char *name, const char *ending)
{
    if (ending[0] == '=')
        return strcmp(name, ending + 1) == 0;
    size_t bytes = strlen(name), end_bytes = strlen(ending);
    return bytes > end_bytes && strcasecmp(name + bytes - end_bytes, ending) == 0;
}

static int rank(const char *name)
{
    int at = 0, count = (int)(sizeof formats / sizeof *formats);
    while (at < count && !fits(name, formats[at].ending))
        at++;
    return at;
}

const char *foreign_files_advice(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct stat s;
    int none = (int)(sizeof formats / sizeof *formats), best = none;
    bool is_file = stat(path, &s) == 0 && S_ISREG(s.st_mode);
    if (is_file)
        best = rank(slash != NULL ? slash + 1 : path);
    DIR *d = is_file ? NULL : opendir(path);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        int here = rank(e->d_name);
        best = here < best ? here : best;
    }
    if (d != NULL)
        closedir(d);
    return best < none ? formats[best].advice : "";
}
