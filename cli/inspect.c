/* penstock inspect: what the importer understood of a model, and how the server will batch it. The
 * model is loaded as for serving, so this is what will run. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text/text_buffer.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/inspect/device.h"
#include "cli/inspect/mxu.h"
#include "cli/inspect/print.h"
#include "cli/inspect/programs.h"
#include "cli/loaded_model.h"
#include "server/protocol/text/text_write.h"

typedef struct inspect_options {
    const char *model, *device, *cache;
    device_precision precision;
    bool is_json, wants_mxu;
} inspect_options;

static void print_error(bool is_json)
{
    fprintf(stderr, "penstock inspect: %s\n", status_message());
    if (!is_json)
        return;
    text_buffer out = {0};
    text_buffer_put(&out, "{\"error\":");
    text_write_json_string(&out, status_message(), strlen(status_message()));
    text_buffer_put(&out, "}\n");
    fwrite(text_buffer_string(&out), 1, out.bytes, stdout);
    text_buffer_dispose(&out);
}

static int inspect(const inspect_options *o)
{
    const loaded_model_options options = {
        .path = o->model, .precision = o->precision, .allows_no_device = true};
    loaded_model loaded;
    text_buffer programs = {0};
    log_configure(LOG_ERROR + 1, LOG_FORMAT_AUTO); /* print_error() says what failed */
    status failure = loaded_model_open(&options, &loaded);
    if (!failure && o->cache != NULL)
        failure = inspect_programs(loaded.model, o->cache, o->is_json, &programs);
    if (failure)
        print_error(o->is_json);
    else if (o->is_json)
        inspect_print_json(loaded.model, o->cache != NULL ? text_buffer_string(&programs) : NULL);
    else
        inspect_print_text(loaded.model);
    if (!failure && !o->is_json)
        printf("%s", text_buffer_string(&programs));
    text_buffer_dispose(&programs);
    if (!failure && !o->is_json && o->wants_mxu)
        inspect_mxu_print(loaded.model);
    loaded_model_close(&loaded);
    return failure ? 1 : 0;
}

int command_inspect(int argc, char **argv)
{
    inspect_options o = {.precision = DEVICE_FP32};
    const flag flags[] = {
        flag_precision("fp32 (default), bf16 or int8.", &o.precision),
        flag_switch("--json", "Print one JSON object.", &o.is_json),
        flag_switch(
            "--mxu",
            "Also print, by bucket and layer, how much of a TPU's matrix unit (MXU) would be idle.",
            &o.wants_mxu),
        flag_text("--cache", "DIR",
                  "Also print what programs the compile cache in DIR has chosen for the model.",
                  &o.cache),
        flag_text("--device", "pjrt:PLUGIN.so",
                  "Instead of a model: print what the plugin's devices are.", &o.device),
    };
    const flags_usage usage = {
        .command = "inspect",
        .synopsis = "MODEL [OPTION...]\n"
                    "       penstock inspect --device pjrt:PLUGIN.so",
        .description =
            "Loads a model on the CPU and prints its inputs, outputs, buckets and operators, and "
            "whether its rows can be batched and padded. A model that cannot be served is "
            "reported with node, operator and reason, and exit status 1.\n\n"
            "MODEL is an ONNX file, a folder with model.onnx, a Hugging Face folder, a folder of "
            "exported programs, or a folder of versions of these, as for `penstock serve --model`.",
        .flags = flags,
        .count = sizeof flags / sizeof *flags,
        .operand = &o.model};
    int code = flags_parse(&usage, argc, argv);
    if (code != FLAGS_OK)
        return code;
    if (o.device != NULL)
        return inspect_device(o.device);
    if (o.model == NULL) {
        (void)status_fail(STATUS_INVALID_ARGUMENT, "MODEL is missing");
        return flags_fail(&usage);
    }
    return inspect(&o);
}
