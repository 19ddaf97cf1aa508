#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "models/loading/load.h"
#include "tests/support/temporary.h"

static char root[TEMPORARY_FOLDER_BYTES];

/* Told what the load is about to do: adds to the files when that has the word in it. */
static void interfere(void *word, const char *text)
{
    if (strstr(text, word) != NULL)
        temporary_write_text(root, "weights", text);
}

static status load_while(const char *word)
{
    device *cpu;
    model *m;
    load_options options = {.batch_max = 2};
    cr_assert_eq(device_cpu_create(1, NULL, &cpu), STATUS_OK);
    load_request request = {.name = "m",
                            .version = 1,
                            .folder = root,
                            .manifest = "none",
                            .options = &options,
                            .devices = &cpu,
                            .device_count = 1,
                            .report = interfere,
                            .context = (void *)word};
    status failure = load_model(&request, &m);
    if (!failure)
        load_destroy(m);
    cpu->interface->destroy(cpu);
    return failure;
}

Test(load, fails_when_files_change_while_they_are_read)
{
    static const char *const moments[] = {"reading", "probing", "warm"};
    char command[300];
    temporary_make(root);
    snprintf(command, sizeof command,
             "cp " PENSTOCK_SOURCE_DIR "/examples/models/digits/1/model.onnx %s", root);
    cr_assert_eq(system(command), 0);
    cr_assert_eq(load_while("no such moment"), STATUS_OK, "%s", status_message());
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(load_while(moments[i]), STATUS_UNAVAILABLE, "%s", moments[i]);
        cr_assert(strstr(status_message(), "changed"), "%s", status_message());
    }
    cr_assert_eq(load_while("no such moment"), STATUS_OK, "%s", status_message());
    temporary_remove(root);
}
